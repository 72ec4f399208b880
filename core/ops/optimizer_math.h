// The rule of Adam for one element, written once for the CPU loops and the CUDA kernels. The three published
// flavours (METHODS.md 0.2) become one formula,
//   u = -size * m / (sqrt(v) + eps'),   w = (w * decay_before + u) * decay_after,
// since torch's m / (sqrt(v) / sqrt(c2) + eps) is sqrt(c2) m / (sqrt(v) + eps sqrt(c2)). Adagrad's and APOLLO's parts follow.
#pragma once
#include <cmath>

#include "core/base/hd.h"
#include "core/ops/optimizers.h"

namespace comera {

template <class T>
struct AdamMath {
  T beta1, rest1, beta2, rest2;  // rest = 1 - beta
  T size, eps;                   // of the update
  T decay_before, decay_after;   // factors on the weight, one of them 1

  // Updates the moments in place; returns the step to add to the weight.
  HD T update(T g, T& m, T& v) const {
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * g * g;
    return -size * m / (std::sqrt(v) + eps);
  }
  HD T apply(T w, T u) const { return (w * decay_before + u) * decay_after; }
};

// t, from 1, and the factor on updates.
struct AdamTime {
  uint64_t t;
  double warmth = 1;
  HD AdamTime(const AdamRestarts& restarts, uint64_t step) : t(step) {
    const uint64_t every = static_cast<uint64_t>(restarts.every), warmup = static_cast<uint64_t>(restarts.warmup);
    if (every == 0 || step <= every) return;
    t = (step - 1) % every + 1;
    if (t < warmup) warmth = static_cast<double>(t) / static_cast<double>(warmup);
  }
};

// Bias corrections in double: 1 - beta2^t cancels in float.
template <class T>
HD AdamMath<T> adam_math(const AdamRule& rule, ParamGroup group, const StepScalars& step) {
  const AdamTime time(rule.restarts, step.optimizer_step);
  const double t = static_cast<double>(time.t), rate = rate_of(step, group);
  const double c1 = 1 - std::pow(rule.beta1, t), root_c2 = std::sqrt(1 - std::pow(rule.beta2, t));
  const double keep = 1 - rate * decay_of(step, group);
  const bool before = rule.flavour == AdamFlavour::torch;
  return {.beta1 = static_cast<T>(rule.beta1),
          .rest1 = static_cast<T>(1 - rule.beta1),
          .beta2 = static_cast<T>(rule.beta2),
          .rest2 = static_cast<T>(1 - rule.beta2),
          .size = static_cast<T>(time.warmth * rate * root_c2 / c1),
          .eps = static_cast<T>(rule.flavour == AdamFlavour::huggingface ? rule.eps : rule.eps * root_c2),
          .decay_before = static_cast<T>(before ? keep : 1),
          .decay_after = static_cast<T>(before ? 1 : keep)};
}

// The rule of every group, computed once a step.
template <class T>
struct AdamOfGroups {
  AdamMath<T> of[kParamGroups];

  AdamOfGroups(const AdamRule& rule, const StepScalars& step) {
    for (int group = 0; group < kParamGroups; ++group) of[group] = adam_math<T>(rule, static_cast<ParamGroup>(group), step);
  }
  const AdamMath<T>& operator[](ParamGroup group) const { return of[static_cast<int>(group)]; }
};

// Adagrad (METHODS.md 9.2), from the sum of squares of an entry or of its row.
template <class T>
struct AdagradMath {
  T rate, keep, eps;

  HD T apply(T w, T g, T sum) const { return keep * w - rate * g / (std::sqrt(sum) + eps); }
};
template <class T>
HD AdagradMath<T> adagrad_math(double eps, ParamGroup group, const StepScalars& step) {
  const double rate = rate_of(step, group);
  return {.rate = static_cast<T>(rate), .keep = static_cast<T>(1 - rate * decay_of(step, group)), .eps = static_cast<T>(eps)};
}

// APOLLO (METHODS.md 6). Moments whose update() is m / (sqrt(v) + eps), in every step.
template <class T>
HD AdamMath<T> unscaled_adam_math(const AdamRule& rule) {
  return {.beta1 = static_cast<T>(rule.beta1),
          .rest1 = static_cast<T>(1 - rule.beta1),
          .beta2 = static_cast<T>(rule.beta2),
          .rest2 = static_cast<T>(1 - rule.beta2),
          .size = T(-1),
          .eps = static_cast<T>(rule.eps),
          .decay_before = T(1),
          .decay_after = T(1)};
}
// The scale of a channel from two sums of squares.
HD double apollo_scale(double u_square, double r_square) { return std::sqrt(u_square) / (std::sqrt(r_square) + 1e-8); }

// The norm of APOLLO's step that is kept, and the factor on d.
struct ApolloLength {
  double norm, factor;
  // Of d: the sum of its squares, and the norm of the step before, 0 where there was none.
  HD ApolloLength(const ApolloRule& rule, double square, double before) {
    const double root = std::sqrt(rule.alpha), length = std::sqrt(square) * (rule.alpha_first ? root : 1);
    const double grown = length / (before + 1e-8);
    const double over = before > 0 && grown > rule.growth ? grown / rule.growth : 1;
    norm = length / over;
    factor = root / over;
  }
};

}  // namespace comera
