// What backward keeps of a layer's input: exactly (a handle, no copy), in bf16, or as 8-bit codes (METHODS.md 12).
#pragma once
#include <cstdint>
#include <memory>

#include "core/tensor/tensor.h"

namespace comera {

struct Ctx;
class ParamSet;

struct Kept {
  Tensor exact;  // exact stash
  Tensor codes;  // bf16 and int8 stash
  Tensor used;   // int8 stash
  explicit operator bool() const { return static_cast<bool>(exact) || static_cast<bool>(codes); }
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
  virtual Kept keep(Ctx& ctx, const StashSlot& slot, const Tensor& x) = 0;
  // x again, exact or restored into a temporary.
  virtual Tensor load(Ctx& ctx, const StashSlot& slot, const Kept& kept) = 0;
  // Start of backward: forgets which tensor was kept last.
  virtual void begin_backward() {}
};

std::unique_ptr<Stash> make_exact_stash();
// Half of f32, with a relative error of 2^-8 at most.
std::unique_ptr<Stash> make_bf16_stash();
// Codes of 8 bits, features in `groups` groups (or the largest number below that divides them), each with a running
// range that keeps the share `decay` of itself a step.
std::unique_ptr<Stash> make_int8_stash(int64_t groups, double decay);

}  // namespace comera
