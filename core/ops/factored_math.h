// Adafactor and its relatives (METHODS.md 0.3, 10), number by number, written once for the CPU loops and the CUDA kernels.
#pragma once
#include <cmath>

#include "core/base/hd.h"
#include "core/ops/ops.h"
#include "core/ops/step_block.h"

namespace comera {

// beta of second moments at step t. 1 - t^-exponent and a corrected one are 0 at the first, so no bias is left.
HD double factored_beta(const MomentDecay& decay, const StepScalars& step) {
  const double t = static_cast<double>(step.optimizer_step);
  if (decay.exponent > 0) return 1 - std::exp(-decay.exponent * std::log(t));
  return decay.corrected ? 1 - (1 - decay.beta) / (1 - std::pow(decay.beta, t)) : decay.beta;
}
template <class T>
HD T factored_moment(T old, double mean_square, double beta, double eps) {
  return static_cast<T>(beta * static_cast<double>(old) + (1 - beta) * (mean_square + eps));
}

// u = g times the factors of its row and its column. Each fits a float where their product, a second moment, might not.
template <class T>
HD T factor_of(T moment, double mean) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(moment) / mean));
}

template <class T>
struct ClippedMomentMath {
  T beta, size;  // size: one over clipping

  // Returns the residual u - m.
  HD T rest(T u, T& m) const {
    u *= size;
    m = beta * m + (1 - beta) * u;
    return u - m;
  }
};

// u_square: the mean over u.
template <class T>
HD ClippedMomentMath<T> clipped_moment_math(double beta, double clip, double u_square) {
  const double over = std::sqrt(u_square) / clip;
  return {.beta = static_cast<T>(beta), .size = static_cast<T>(over > 1 ? 1 / over : 1)};
}

template <class T>
struct AdafactorMath {
  T beta1, size;  // size: rate over clipping
  T keep;         // factor on the weight

  HD T update(T u) const { return -size * u; }
  // With a first moment, which holds rates.
  HD T update(T u, T& m) const {
    m = beta1 * m + (1 - beta1) * (size * u);
    return -m;
  }
};

// The squares are means over u and over w.
template <class T>
HD AdafactorMath<T> adafactor_math(const AdafactorRule& rule, ParamGroup group, const StepScalars& step, double u_square, double w_square) {
  double rate = rate_of(step, group);
  if (rule.relative_step) {
    const double t = static_cast<double>(step.optimizer_step), most = rule.warmup_init ? 1e-6 * t : 1e-2, root = 1 / std::sqrt(t);
    rate = most < root ? most : root;
  }
  const double size = std::sqrt(w_square), clip = std::sqrt(u_square) / rule.clip;
  if (rule.scale_parameter) rate *= size > rule.least_rms ? size : rule.least_rms;
  return {.beta1 = static_cast<T>(rule.beta1),
          .size = static_cast<T>(clip > 1 ? rate / clip : rate),
          .keep = static_cast<T>(1 - rate * decay_of(step, group))};
}

// Flora (METHODS.md 5): whether the projection changes after this step.
HD bool flora_switches(const StepScalars& step, int64_t gap) { return step.step % static_cast<uint64_t>(gap) == 0; }
// The history moves the same way at every step but the one where it goes through the whole update.
template <class T>
struct FloraMath {
  T keep, rest;
  bool switches;
  HD FloraMath(double beta1, int64_t gap, const StepScalars& step)
      : keep(static_cast<T>(beta1)), rest(static_cast<T>(1 - beta1)), switches(flora_switches(step, gap)) {}
  HD T of_update(T u, T sum) const { return switches ? sum : rest * u; }
  HD T of_history(T c) const { return switches ? T(0) : keep * c; }
};

}  // namespace comera
