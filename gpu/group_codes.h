// Codes in groups with a scale and a zero each (METHODS.md 7).
#pragma once
#include "gpu/gpu_ops.h"

namespace comera::gpu {

// One block a group.
template <class T>
struct GroupRanges {
  GroupCodes how;
  int64_t count;
  const T* x;
  T *scale, *zero;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t group = g.block(); group < how.groups(count); group += g.blocks()) {
      const int64_t first = group * how.group, end = first + how.group < count ? first + how.group : count;
      T low = 0, high = 0, bad = 0;
      for (int64_t i = first + g.thread(); i < end; i += g.threads()) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
        bad += x[i] - x[i];
      }
      low = g.reduce(low, Smallest{});
      high = g.reduce(high, Largest{});
      bad = g.reduce(bad, Sum{});
      if (g.thread() != 0) continue;
      const GroupRange<T> range = GroupRange<T>::of(low, high, bad, how.bits);
      scale[group] = range.scale;
      zero[group] = range.zero;
    }
  }
};

// A thread codes four neighbours with one Philox draw.
template <class T>
struct GroupCode {
  GroupCodes how;
  int64_t count;
  const T *x, *scale, *zero;
  uint8_t* codes;
  uint32_t site;
  const StepScalars* step;  // null: to the nearest
  KERNEL void operator()(int64_t four) const {
    Philox::Block drawn = {};
    if (step) drawn = Philox{step->seed, static_cast<uint32_t>(step->step), site}.draw(static_cast<uint64_t>(four));
    const int64_t first = 4 * four;
    int code[4] = {};
    for (int l = 0; l < 4 && first + l < count; ++l) {
      const int64_t i = first + l;
      const GroupRange<T> range{scale[i / how.group], zero[i / how.group]};
      code[l] = step ? range.code(x[i], static_cast<T>(uniform_half(drawn.v[l])), how.bits) : range.code(x[i], how.bits);
    }
    const int apart = how.bits == 8 ? 1 : 2;
    for (int l = 0; l < 4 && first + l < count; l += apart)
      codes[(first + l) / apart] = static_cast<uint8_t>(apart == 1 ? code[l] : code[l] | code[l + 1] << 4);
  }
};

template <class T>
struct GroupNumber {
  GroupCodes how;
  T* x;
  const uint8_t* codes;
  const T *scale, *zero;
  KERNEL void operator()(int64_t i) const {
    const int64_t group = i / how.group;
    x[i] = GroupRange<T>{scale[group], zero[group]}.number(group_code_at(codes, how.bits, i));
  }
};

template <class M>
void GpuOps<M>::body(const op::GroupQuantise& args) {
  begin(args, args.x.shape());
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const int64_t count = args.x.count();
    machine_.launch(over_items(args.how.groups(count), args.how.group),
                    GroupRanges<T>{args.how, count, args.x.data<T>(), args.scale.data<T>(), args.zero.data<T>()});
    each(ceil_div(count, 4),
         GroupCode<T>{args.how, count, args.x.data<T>(), args.scale.data<T>(), args.zero.data<T>(), static_cast<uint8_t*>(args.codes.raw()),
                      args.site, args.site != 0 ? scalars_in(args.step) : nullptr});
  });
}

template <class M>
void GpuOps<M>::body(const op::GroupDequantise& args) {
  begin(args, args.x.shape());
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    each(args.x.count(), GroupNumber<T>{args.how, args.x.data<T>(), static_cast<const uint8_t*>(args.codes.raw()), args.scale.data<T>(),
                                        args.zero.data<T>()});
  });
}

}  // namespace comera::gpu
