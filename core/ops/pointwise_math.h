// The math of the pointwise ops, written once: the CPU loops and the CUDA kernels call these functors.
#pragma once
#include <cstdint>

#include "core/base/rng.h"
#include "core/ops/fast_math.h"
#include "core/ops/pointwise.h"
#include "core/ops/step_block.h"

namespace comera {

// ---- activations: forward(x), and backward(dy, saved) = dy f'(.) ------------------------------------------------

// x Phi(x). `saved` is x.
struct Gelu {
  // x Phi(x) = max(x, 0) - |x| (1 - Phi(|x|)): the tail alone needs an approximation.
  HD static float forward(float x) {
    const float t = std::fabs(x);
    const float low = t > 8.0f ? 8.0f : t;  // beyond, the tail is far below one rounding, and infinity stays infinity
    return (x < 0.0f ? 0.0f : x) - low * fast::normal_tail(t);
  }
  HD static double forward(double x) { return 0.5 * x * std::erfc(-x * 0.70710678118654752440); }

  // Phi(x) + x phi(x)
  HD static float slope(float x) {
    const float t = std::fabs(x), tail = fast::normal_tail(t);
    const float u = t > 12.0f ? 12.0f : t;
    const float density = fast::exp2_normal(u * u * -0.7213475204f) * 0.3989422804f;
    const float signed_u = x < 0.0f ? -u : u;
    return (x < 0.0f ? tail : 1.0f - tail) + signed_u * density;
  }
  HD static double slope(double x) {
    return 0.5 * std::erfc(-x * 0.70710678118654752440) + x * 0.39894228040143267794 * std::exp(-0.5 * x * x);
  }
  template <class T>
  HD static T backward(T dy, T x) {
    return dy * slope(x);
  }
};

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). `saved` is x.
struct GeluTanh {
  template <class T>
  HD static T inner(T x) {
    return fast::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x));
  }
  template <class T>
  HD static T forward(T x) {
    return T(0.5) * x * (T(1) + inner(x));
  }
  template <class T>
  HD static T backward(T dy, T x) {
    const T t = inner(x), slope = T(0.79788456080286535588) * (T(1) + T(3 * 0.044715) * x * x);
    return dy * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * slope);
  }
};

// x / (1 + exp(-x)). `saved` is x.
struct Silu {
  template <class T>
  HD static T sigmoid(T x) {
    return T(1) / (T(1) + fast::exp(-x));
  }
  template <class T>
  HD static T forward(T x) {
    return x * sigmoid(x);
  }
  template <class T>
  HD static T backward(T dy, T x) {
    const T s = sigmoid(x);
    return dy * (s + x * s * (T(1) - s));
  }
};

// `saved` is y.
struct Tanh {
  template <class T>
  HD static T forward(T x) {
    return fast::tanh(x);
  }
  template <class T>
  HD static T backward(T dy, T y) {
    return dy * (T(1) - y * y);
  }
};

// `saved` is x; the slope at 0 is 0. NaN passes both ways.
struct Relu {
  template <class T>
  HD static T forward(T x) {
    return x < T(0) ? T(0) : x;
  }
  template <class T>
  HD static T backward(T dy, T x) {
    return x <= T(0) ? dy * T(0) : dy * (x > T(0) ? T(1) : x);
  }
};

// Calls body(functor) for the kind: a loop or a kernel is compiled once for each.
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

// ---- dropout ----------------------------------------------------------------------------------------------------

// Keeps an element when its draw, 16 random bits, is at least the threshold: p is rounded to a multiple of 2^-16, and the scale is that of
// the rounded one, so the mean is kept. T is the type of the elements.
template <class T>
struct DropoutMask {
  uint32_t threshold = 0;
  T scale = 1;  // of what is kept: 1 / (1 - p)

  explicit DropoutMask(double probability) : threshold(static_cast<uint32_t>(std::lround(probability * kDraws))) {
    scale = threshold < kDraws ? static_cast<T>(kDraws / (kDraws - threshold)) : T(0);
  }
  HD bool keeps(uint32_t draw) const { return draw >= threshold; }
  // Multiplied, not selected, so that a NaN or infinity is seen even where it is dropped.
  HD T apply(T x, uint32_t draw) const { return x * (keeps(draw) ? scale : T(0)); }

 private:
  static constexpr double kDraws = 65536;
};

// ---- random numbers ---------------------------------------------------------------------------------------------

// cos and sin of 2 pi x, 0 <= x < 1, to 1e-15: the same numbers on every device, without the tables that a GPU's cos() reduces large
// angles by.
struct Turn {
  double cos, sin;
  HD explicit Turn(double x) {
    const int quarter = static_cast<int>(4 * x + 0.5);
    const double t = 6.283185307179586476925286766559 * (x - 0.25 * quarter), t2 = t * t;  // |t| <= pi / 4
    double c = 1, s = 1;
    for (int n = 16; n >= 2; n -= 2) {  // Taylor, by Horner
      c = 1 - c * t2 / ((n - 1) * n);
      s = 1 - s * t2 / (n * (n + 1));
    }
    s *= t;
    cos = quarter % 4 == 0 ? c : quarter % 4 == 1 ? -s : quarter % 4 == 2 ? -c : s;
    sin = quarter % 4 == 0 ? s : quarter % 4 == 1 ? c : quarter % 4 == 2 ? -s : -c;
  }
};

// Two normal draws from two words of 32 bits each, by Box-Muller.
struct NormalPair {
  double even, odd;
  HD NormalPair(uint32_t first, uint32_t second) {
    const double open = (static_cast<double>(first) + 1) * (1.0 / 4294967296.0), half = static_cast<double>(second) * (1.0 / 4294967296.0);
    const Turn turn(half);
    const double length = std::sqrt(-2 * std::log(open));
    even = length * turn.cos;
    odd = length * turn.sin;
  }
};
// Normal draw `index` of a stream.
HD double normal_at(const Philox& stream, uint64_t index) {
  const Philox::Block words = stream.draw(index >> 2);
  const NormalPair pair(words.word(index & ~uint64_t{1}), words.word(index | 1));
  return index & 1 ? pair.odd : pair.even;
}
// The stream of a site at the step that comes `ahead` steps later, where the draws of one step hold for `gap` steps.
HD Philox normal_stream(const StepScalars& step, uint32_t site, int64_t gap, int64_t ahead) {
  const uint64_t passed = step.step + static_cast<uint64_t>(ahead) - 1;
  return {step.seed, static_cast<uint32_t>(passed - passed % static_cast<uint64_t>(gap) + 1), site};
}

}  // namespace comera
