// What backward keeps of a tensor: exactly (a handle, no copy), in bf16, as 8-bit codes (METHODS.md 12), some of its rows
// (METHODS.md 11), or nothing where another layer can compute it again (the waist). Stashes stack: the waist over sampled rows over
// one of the others.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "core/ops/norm.h"
#include "core/tensor/tensor.h"

namespace comera {

struct Ctx;
struct WtaConfig;
class ParamSet;

// A layer that can compute its output again from what it keeps for its own backward. Backward runs consumers before
// producers, so a producer still has all of it when its output is asked for.
class Remake {
 public:
  virtual ~Remake() = default;
  virtual Tensor remake(Ctx& ctx) = 0;  // the caller's alone: it may write into it
  virtual int depth() const = 0;        // products and norms between its output and the kept tensors
  // If its output is the norm of a tensor that is kept exactly: that tensor, which the caller must not write to, and the norm.
  struct NormOfKept {
    Tensor sum;
    op::NormForward::Before norm;
  };
  virtual std::optional<NormOfKept> norm_of_kept(Ctx& ctx) { return std::nullopt; }
};

// `product`: x is needed for a product d^T x alone, with a gradient d of the same rows. So some rows can stand for all.
enum class Use : unsigned char { other, product };

struct Kept {
  Tensor exact;                    // exact stash
  Tensor codes;                    // bf16 and int8 stash
  Tensor used;                     // int8 stash
  Tensor index = {}, weight = {};  // sampled rows: which they are, and the factors of the same rows of d
  Remake* maker = nullptr;         // waist: computes the tensor again
  explicit operator bool() const { return maker || static_cast<bool>(exact) || static_cast<bool>(codes); }
};

// One place where something is kept: its random site and, for int8, the running range (a State of the run).
struct StashSlot {
  uint32_t site = 0;
  const Tensor* range = nullptr;  // (groups, 2), null but for the int8 stash
  int64_t groups = 1;
};

class Stash {
 public:
  virtual ~Stash() = default;
  // Called while the model is built: the slot for an input of `features` columns.
  virtual StashSlot slot(ParamSet& params, const char* owner, int64_t features, uint32_t site) = 0;
  // Keeps x (T, D). The same tensor kept twice in a row costs once.
  virtual Kept keep(Ctx& ctx, const StashSlot& slot, const Tensor& x, Use use = Use::other) = 0;
  // x again, exact or restored into a temporary; its sampled rows where `kept` has some.
  virtual Tensor load(Ctx& ctx, const StashSlot& slot, const Kept& kept) = 0;
  // Whether load() returns the bits that keep() was given. If not, a layer must not mix them with values of the forward pass.
  virtual bool exact() const { return true; }
  // While y is computed, in passes that keep: `maker` can compute it again. Whoever writes into an offered tensor says so (overwritten).
  virtual void offer(const Tensor& y, Remake& maker) {}
  // The layer that offered x; null: none did, or this stash takes no offers.
  virtual Remake* maker(const Tensor& x) const { return nullptr; }
  // x will be written into: what was kept of it stays, but its block is another tensor from here on.
  virtual void overwritten(const Tensor& x) {}
  // Forgets which tensors were kept and offered: before forward, before backward and after it, since an arena numbers its
  // blocks anew each step.
  virtual void forget() {}
};

// d (T, N) as it meets what load() gives in a product d^T x: as it is, or (k, N) weighted rows where rows of x were sampled. The bias
// and dx take all of d.
Tensor rows_for(Ctx& ctx, const Kept& kept, const Tensor& d);

std::unique_ptr<Stash> make_exact_stash();
// Half of f32, with a relative error of 2^-8 at most.
std::unique_ptr<Stash> make_bf16_stash();
// Nothing is kept of what was offered; the rest goes to `below`. Backward sees the same bits as with `below` alone, if it is exact:
// memory of a tensor-train layer's wide output then falls with its rank.
std::unique_ptr<Stash> make_waist_stash(std::unique_ptr<Stash> below);
// Codes of 8 bits, features in `groups` groups (or the largest number below that divides them), each with a running
// range that keeps the share `decay` of itself a step.
std::unique_ptr<Stash> make_int8_stash(int64_t groups, double decay);
// Of inputs of products it keeps sampled rows, through `below`; d^T x has the right mean over the draws. All else goes to `below`.
std::unique_ptr<Stash> make_sampled_stash(const WtaConfig& config, std::unique_ptr<Stash> below);

}  // namespace comera
