// Adam and weight decay, element by element.
#include "core/cpu/cpu_ops.h"
#include "core/cpu/parts.h"
#include "core/cpu/typed.h"
#include "core/ops/optimizer_math.h"

namespace comera {

namespace {

void check_time(const StepScalars& step) { CHECK(step.optimizer_step >= 1, "Adam's bias corrections need step 1 or later"); }

}  // namespace

void CpuOps::body(const op::Adam& args) {
  check_time(scalars_in(args.step));
  by_float_type(args.all[0].w, [&](auto type) {
    using T = decltype(type);
    const AdamOfGroups<T> math(args.rule, scalars_in(args.step));
    for_parts(
        pool_, args.all.view(), kElementGrain, [](const AdamTensors& p) { return p.w.count(); },
        [&](const AdamTensors& p, int64_t begin, int64_t end) {
          const AdamMath<T> rule_of_thread = math[p.group];  // a local copy: the stores below might alias it
          T *weight = p.w.data<T>(), *first = p.m.data<T>(), *second = p.v.data<T>();
          const T* grad = p.g.data<T>();
          for (int64_t i = begin; i < end; ++i)
            weight[i] = rule_of_thread.apply(weight[i], rule_of_thread.update(grad[i], first[i], second[i]));
        });
  });
}

void CpuOps::body(const op::AdamUpdate& args) {
  check_time(scalars_in(args.step));
  by_float_type(args.u, [&](auto type) {
    using T = decltype(type);
    const AdamMath<T> math = adam_math<T>(args.rule, args.group, scalars_in(args.step));
    T *out = args.u.data<T>(), *first = args.m.data<T>(), *second = args.v.data<T>();
    const T* grad = args.g.data<T>();
    pool_.parallel_for(args.u.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      const AdamMath<T> rule_of_thread = math;
      for (int64_t i = begin; i < end; ++i) out[i] = rule_of_thread.update(grad[i], first[i], second[i]);
    });
  });
}

void CpuOps::body(const op::WeightDecay& args) {
  const StepScalars& scalars = scalars_in(args.step);
  const double keep = 1 - scalars.learning_rate[static_cast<int>(args.group)] * scalars.weight_decay;
  if (keep == 1) return;
  by_float_type(args.w, [&](auto type) {
    using T = decltype(type);
    T* weight = args.w.data<T>();
    const T factor = static_cast<T>(keep);
    pool_.parallel_for(args.w.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) weight[i] *= factor;
    });
  });
}

}  // namespace comera
