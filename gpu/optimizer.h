// Adam and weight decay, element by element. Each block works out the step's constants once.
#pragma once
#include "core/ops/optimizer_math.h"
#include "gpu/gpu_ops.h"

namespace comera::gpu {

// The constants of Adam in the block's shared memory, at `room`. Every thread comes here.
template <class T, class Group>
KERNEL const AdamMath<T>& shared_adam(Group& g, AdamMath<T>* room, const AdamRule& rule, ParamGroup group, const StepScalars* step) {
  if (g.thread() == 0) *room = adam_math<T>(rule, group, *step);
  g.sync();
  return *room;
}

// The step is added to w, or where w is null written to u.
template <class T>
struct Adam {
  int64_t count;
  T* w;
  T* u;
  const T* grad;
  T *m, *v;
  AdamRule rule;
  ParamGroup group;
  const StepScalars* step;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const AdamMath<T> math = shared_adam(g, g.template shared<AdamMath<T>>(), rule, group, step);
    for (int64_t i = first_element(g); i < count; i += all_threads(g)) {
      const T update = math.update(grad[i], m[i], v[i]);
      if (w)
        w[i] = math.apply(w[i], update);
      else
        u[i] = update;
    }
  }
};

template <class T>
struct WeightDecay {
  T* w;
  ParamGroup group;
  const StepScalars* step;
  KERNEL void operator()(int64_t i) const { w[i] *= static_cast<T>(1 - step->learning_rate[static_cast<int>(group)] * step->weight_decay); }
};

template <class M>
void GpuOps<M>::do_adam(const Tensor& w, const Tensor& g, const Tensor& m, const Tensor& v, AdamRule rule, ParamGroup group,
                        const Tensor& step) {
  machine_.begin("adam", w.shape());
  by_float_type(w, [&](auto type) {
    using T = decltype(type);
    machine_.launch(over_elements(w.count(), sizeof(AdamMath<T>)),
                    Adam<T>{w.count(), w.data<T>(), nullptr, g.data<T>(), m.data<T>(), v.data<T>(), rule, group, scalars_in(step)});
  });
}

template <class M>
void GpuOps<M>::do_adam_update(const Tensor& u, const Tensor& g, const Tensor& m, const Tensor& v, AdamRule rule, ParamGroup group,
                               const Tensor& step) {
  machine_.begin("adam_update", u.shape());
  by_float_type(u, [&](auto type) {
    using T = decltype(type);
    machine_.launch(over_elements(u.count(), sizeof(AdamMath<T>)),
                    Adam<T>{u.count(), nullptr, u.data<T>(), g.data<T>(), m.data<T>(), v.data<T>(), rule, group, scalars_in(step)});
  });
}

template <class M>
void GpuOps<M>::do_weight_decay(const Tensor& w, ParamGroup group, const Tensor& step) {
  machine_.begin("weight_decay", w.shape());
  by_float_type(w, [&](auto type) {
    using T = decltype(type);
    each(w.count(), WeightDecay<T>{w.data<T>(), group, scalars_in(step)});
  });
}

}  // namespace comera::gpu
