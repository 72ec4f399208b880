#pragma once
#include "core/ops/pointwise.h"
#include "core/ops/pointwise_math.h"

namespace comera {

// Calls body(functor) for the kind: the loop is compiled once for each.
template <class Body>
void by_kind(Activation kind, const Body& body) {
  switch (kind) {
    case Activation::gelu:
      return body(Gelu{});
    case Activation::gelu_tanh:
      return body(GeluTanh{});
    case Activation::silu:
      return body(Silu{});
    case Activation::tanh:
      return body(Tanh{});
    case Activation::relu:
      return body(Relu{});
  }
}

}  // namespace comera
