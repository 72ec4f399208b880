// Adam and weight decay, element by element. Each block computes the step's constants once.
#pragma once
#include "core/ops/optimizer_math.h"
#include "gpu/entry_list.h"

namespace comera::gpu {

// Adam's constants of each parameter group, in the block's shared memory at `room`. Every thread must call.
template <class T, class Group>
KERNEL const AdamMath<T>* shared_adam(Group& g, AdamMath<T>* room, const AdamRule& rule, const StepScalars* step) {
  for (int i = g.thread(); i < kParamGroups; i += g.threads()) room[i] = adam_math<T>(rule, static_cast<ParamGroup>(i), *step);
  g.sync();
  return room;
}

template <class T>
struct AdamEntry {
  T* w;
  const T* grad;
  T *m, *v;
  int64_t count, first;
  ParamGroup group;
};

template <class T>
struct Adam {
  AdamRule rule;
  const StepScalars* step;
  EntryList<AdamEntry<T>, 512> list;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const AdamMath<T>* maths = shared_adam(g, g.template shared<AdamMath<T>>(), rule, step);
    each_piece(g, list, [&](const AdamEntry<T>& p, const Range& of) {
      const AdamMath<T> math = maths[static_cast<int>(p.group)];
      for (int64_t i = of.begin + g.thread(); i < of.end; i += g.threads())
        p.w[i] = math.apply(p.w[i], math.update(p.grad[i], p.m[i], p.v[i]));
    });
  }
};

// u = the update, which the caller adds.
template <class T>
struct AdamUpdate {
  int64_t count;
  T* u;
  const T* grad;
  T *m, *v;
  AdamRule rule;
  ParamGroup group;
  const StepScalars* step;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const AdamMath<T> math = shared_adam(g, g.template shared<AdamMath<T>>(), rule, step)[static_cast<int>(group)];
    for (int64_t i = first_element(g); i < count; i += all_threads(g)) u[i] = math.update(grad[i], m[i], v[i]);
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
void GpuOps<M>::body(const op::Adam& args) {
  begin(args, shape_of_list(args.all, [](const AdamTensors& p) { return p.w.count(); }));
  by_float_type(args.all[0].w, [&](auto type) {
    using T = decltype(type);
    launch_lists(machine_, Adam<T>{args.rule, scalars_in(args.step), {}}, args.all, kBlock, kParamGroups * sizeof(AdamMath<T>),
                 [](const AdamTensors& p) {
                   return std::pair{AdamEntry<T>{p.w.data<T>(), p.g.data<T>(), p.m.data<T>(), p.v.data<T>(), p.w.count(), 0, p.group},
                                    ceil_div(p.w.count(), kListPiece)};
                 });
  });
}

template <class M>
void GpuOps<M>::body(const op::AdamUpdate& args) {
  begin(args, args.u.shape());
  by_float_type(args.u, [&](auto type) {
    using T = decltype(type);
    machine_.launch(over_elements(args.u.count(), kParamGroups * sizeof(AdamMath<T>)),
                    AdamUpdate<T>{args.u.count(), args.u.data<T>(), args.g.data<T>(), args.m.data<T>(), args.v.data<T>(), args.rule,
                                  args.group, scalars_in(args.step)});
  });
}

template <class M>
void GpuOps<M>::body(const op::WeightDecay& args) {
  begin(args, args.w.shape());
  by_float_type(args.w, [&](auto type) {
    using T = decltype(type);
    each(args.w.count(), WeightDecay<T>{args.w.data<T>(), args.group, scalars_in(args.step)});
  });
}

}  // namespace comera::gpu
