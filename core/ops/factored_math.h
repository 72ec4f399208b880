// Adafactor and its relatives (METHODS.md 0.3), number by number, written once for the CPU loops and the CUDA kernels.
#pragma once
#include <cmath>

#include "core/base/hd.h"
#include "core/ops/ops.h"
#include "core/ops/step_block.h"

namespace comera {

// beta of second moments at step t, 1 - t^-exponent: 0 at the first, so no bias is to be corrected.
HD double factored_beta(double exponent, const StepScalars& step) {
  return 1 - std::exp(-exponent * std::log(static_cast<double>(step.optimizer_step)));
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
  double rate = step.learning_rate[static_cast<int>(group)];
  if (rule.relative_step) {
    const double t = static_cast<double>(step.optimizer_step), most = rule.warmup_init ? 1e-6 * t : 1e-2, root = 1 / std::sqrt(t);
    rate = most < root ? most : root;
  }
  const double size = std::sqrt(w_square), clip = std::sqrt(u_square) / rule.clip;
  if (rule.scale_parameter) rate *= size > rule.least_rms ? size : rule.least_rms;
  return {.beta1 = static_cast<T>(rule.beta1),
          .size = static_cast<T>(clip > 1 ? rate / clip : rate),
          .keep = static_cast<T>(1 - rate * step.weight_decay)};
}

}  // namespace comera
