// Batches of several parts, and clipping (core/ops/gradient_math.h).
#pragma once
#include "core/ops/gradient_math.h"
#include "gpu/gpu_ops.h"

namespace comera::gpu {

// One thread adds up; ScaleByExamples reads the number of examples of the part, which stays in results.
struct AddPart {
  StepResults* results;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    if (g.thread() == 0) add_part(*results);
  }
};
struct FinishParts {
  StepResults* results;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    if (g.thread() == 0) finish_parts(*results);
  }
};

template <class T>
struct ScaleByExamples {
  T* y;
  const StepResults* results;
  KERNEL void operator()(int64_t i) const { y[i] *= static_cast<T>(results->examples); }
};
template <class T>
struct ScaleByWeight {
  T* y;
  const StepResults* results;
  KERNEL void operator()(int64_t i) const { y[i] *= static_cast<T>(gradient_weight(*results)); }
};
template <class T>
struct ScaleToNorm {
  T* y;
  const StepResults* results;
  double limit;
  KERNEL void operator()(int64_t i) const { y[i] *= static_cast<T>(clip_factor(*results, limit)); }
};

template <class M>
void GpuOps<M>::body(const op::AddPart& args) {
  begin(args, args.dlogits.shape());
  machine_.launch({1, kBlock}, AddPart{results_in(args.results)});
  by_float_type(args.dlogits, [&](auto type) {
    using T = decltype(type);
    each(args.dlogits.count(), ScaleByExamples<T>{args.dlogits.data<T>(), results_in(args.results)});
  });
}

template <class M>
void GpuOps<M>::body(const op::FinishParts& args) {
  begin(args, {1});
  machine_.launch({1, kBlock}, FinishParts{results_in(args.results)});
}

template <class M>
void GpuOps<M>::body(const op::WeightGradients& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    each(args.y.count(), ScaleByWeight<T>{args.y.data<T>(), results_in(args.results)});
  });
}

template <class M>
void GpuOps<M>::body(const op::ClipGradients& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    each(args.y.count(), ScaleToNorm<T>{args.y.data<T>(), results_in(args.results), args.limit});
  });
}

}  // namespace comera::gpu
