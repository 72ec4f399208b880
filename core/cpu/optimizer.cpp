// Adam and weight decay, element by element.
#include "core/cpu/cpu_ops.h"
#include "core/cpu/parts.h"
#include "core/cpu/typed.h"
#include "core/ops/optimizer_math.h"

namespace comera {

namespace {

void check_time(const StepScalars& step) { CHECK(step.optimizer_step >= 1, "Adam's bias corrections need step 1 or later"); }

}  // namespace

void CpuOps::do_adam(std::span<const AdamTensors> all, AdamRule rule, const Tensor& step) {
  check_time(scalars_in(step));
  by_float_type(all[0].w, [&](auto type) {
    using T = decltype(type);
    const AdamOfGroups<T> math(rule, scalars_in(step));
    for_parts(
        pool_, all, kElementGrain, [](const AdamTensors& p) { return p.w.count(); },
        [&](const AdamTensors& p, int64_t begin, int64_t end) {
          const AdamMath<T> rule_of_thread = math[p.group];  // in registers: the stores below might else change it
          T *weight = p.w.data<T>(), *first = p.m.data<T>(), *second = p.v.data<T>();
          const T* grad = p.g.data<T>();
          for (int64_t i = begin; i < end; ++i)
            weight[i] = rule_of_thread.apply(weight[i], rule_of_thread.update(grad[i], first[i], second[i]));
        });
  });
}

void CpuOps::do_adam_update(const Tensor& u, const Tensor& g, const Tensor& m, const Tensor& v, AdamRule rule, ParamGroup group,
                            const Tensor& step) {
  check_time(scalars_in(step));
  by_float_type(u, [&](auto type) {
    using T = decltype(type);
    const AdamMath<T> math = adam_math<T>(rule, group, scalars_in(step));
    T *out = u.data<T>(), *first = m.data<T>(), *second = v.data<T>();
    const T* grad = g.data<T>();
    pool_.parallel_for(u.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      const AdamMath<T> rule_of_thread = math;
      for (int64_t i = begin; i < end; ++i) out[i] = rule_of_thread.update(grad[i], first[i], second[i]);
    });
  });
}

void CpuOps::do_weight_decay(const Tensor& w, ParamGroup group, const Tensor& step) {
  const StepScalars& scalars = scalars_in(step);
  const double keep = 1 - scalars.learning_rate[static_cast<int>(group)] * scalars.weight_decay;
  if (keep == 1) return;
  by_float_type(w, [&](auto type) {
    using T = decltype(type);
    T* weight = w.data<T>();
    const T factor = static_cast<T>(keep);
    pool_.parallel_for(w.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) weight[i] *= factor;
    });
  });
}

}  // namespace comera
