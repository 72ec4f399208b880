// A layer: forward, backward, and what backward needs in between. Passed explicitly, never global. Handles are
// passed by value and moved, so that a temporary is given back to the arena as soon as nobody needs it.
#pragma once
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/layers/param.h"
#include "core/layers/stash.h"
#include "core/ops/ops.h"

namespace comera {

class GradTaker;

// Everything a layer may use during a step.
struct Ctx {
  Ops& ops;
  Arena& arena;
  Stash& stash;
  Tensor step;     // StepScalars block
  Tensor results;  // StepResults block
  DType dtype = DType::f32;
  bool training = true;         // false: no dropout, nothing is kept
  Sequences sequences = {};     // of the batch, for attention
  GradTaker* taker = nullptr;   // of gradients that are given (grads.h)
  bool forgets = false;         // the first pass of a block that is computed twice: nothing is kept
  int64_t part = 0, parts = 1;  // of the batch, in training

  // The same pass with another stash.
  Ctx over(Stash& other) const { return {ops, arena, other, step, results, dtype, training, sequences, taker, forgets, part, parts}; }

  bool keeps() const { return training && !forgets; }  // a backward pass follows

  // A temporary. `tag` is a literal that names it in the memory view.
  Tensor temp(const Shape& shape, const char* tag) { return temp(shape, dtype, tag); }
  Tensor temp(const Shape& shape, DType type, const char* tag) {
    Lease lease;
    void* data = arena.take(shape.count() * static_cast<int64_t>(size_of(type)), tag, lease);
    return Tensor(data, shape, type, std::move(lease));
  }
  // Where an op that may write over x (Role::in_place) has its result: in x's own block if no other handle holds it, else in a temporary.
  Tensor in_place_of(const Tensor& x, const char* tag) {
    if (!x.lease().is_only()) return temp(x.shape(), x.dtype(), tag);
    stash.overwritten(x);
    return x;
  }
};

// A tensor (T, D) in parts: the sum of `whole` and a product, one of which may be missing. Its reader computes the product row by row.
struct InParts {
  InParts(Tensor whole = {}, std::optional<ThinProduct> thin = {}) : whole(std::move(whole)), thin(std::move(thin)) {}
  explicit operator bool() const { return static_cast<bool>(whole) || thin; }
  Tensor whole;
  std::optional<ThinProduct> thin;
};
// Adds the parts up, in place of `whole` if there is one.
Tensor sum_of_parts(Ctx& ctx, InParts x);

class Layer {
 public:
  virtual ~Layer() = default;
  // x (T, I) -> y (T, O); an embedding takes ids (T).
  virtual Tensor forward(Ctx& ctx, Tensor x) = 0;
  // dy (T, O) -> dx (T, I), and the gradients of the layer's parameters ("="). With `into` (T, I) the result is
  // added to it and it is returned. An embedding returns an empty tensor.
  virtual Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) = 0;
  // The same for a layer that leaves a product to the reader of y or dx, or that takes one as part of dy.
  virtual InParts forward_in_parts(Ctx& ctx, Tensor x) { return forward(ctx, std::move(x)); }
  virtual InParts backward_in_parts(Ctx& ctx, InParts dy, Tensor into = {}) {
    return backward(ctx, sum_of_parts(ctx, std::move(dy)), std::move(into));
  }
  // If backward begins with a product of dy and a thin matrix: room for the result, and the matrix. The caller, who computes dy, then
  // computes this product too, before backward_in_parts().
  virtual std::optional<op::NormBackward::Onward> begin_backward(Ctx& ctx, int64_t tokens) { return std::nullopt; }
};

// What a linear layer is for; options are given per kind.
enum class LinearKind : unsigned char { attention, ffn_in, ffn_out, convolution, classifier, head };

}  // namespace comera
