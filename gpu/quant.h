// 8-bit moments in blocks (METHODS.md 13), the int8 stash (METHODS.md 12) and the bf16 stash.
#pragma once
#include "core/ops/quant_math.h"
#include "core/ops/small_floats.h"
#include "gpu/column_sums.h"
#include "gpu/optimizer.h"

namespace comera::gpu {

inline const QuantMap& quant_map(bool is_signed) {
  static const QuantMap maps[2] = {make_quant_map(false), make_quant_map(true)};
  return maps[is_signed];
}

// Copies a map to shared memory, where divergent lookups are cheap. The caller syncs.
template <class Group>
KERNEL void load_map(const Group& g, QuantMap* to, const QuantMap& map) {
  for (int i = g.thread(); i < 256; i += g.threads()) {
    to->value[i] = map.value[i];
    if (i < 255) to->border[i] = map.border[i];
  }
}

// Codes of `count` <= 256 numbers relative to their largest absolute value, which is returned. Each thread reads only its own
// numbers.
template <class T, class Group>
KERNEL float quantise_block(Group& g, const QuantMap& map, bool is_signed, NeverZero never, const T* x, int count, uint8_t* codes) {
  T largest = 0;
  for (int i = g.thread(); i < count; i += g.threads()) {
    const T size = x[i] < T(0) ? -x[i] : x[i];
    largest = size > largest ? size : largest;
  }
  const float absmax = static_cast<float>(g.reduce(largest, Largest{}));
  const T divisor = absmax > 0 ? static_cast<T>(absmax) : T(1);  // a block of zeros
  for (int i = g.thread(); i < count; i += g.threads()) {
    const float scaled = static_cast<float>(x[i] / divisor);
    codes[i] = static_cast<uint8_t>(guarded_code(never, quant_zero(is_signed), quant_code(map.border, scaled), scaled));
  }
  return absmax;
}

HD int elements_of_block(int64_t block, int64_t count) {
  const int64_t left = count - block * kQuantBlock;
  return static_cast<int>(left < kQuantBlock ? left : kQuantBlock);
}

template <class T>
struct Adam8bitEntry {
  T* w;
  const T* grad;
  uint8_t *m8, *v8;
  float *absmax_m, *absmax_v;
  int64_t count, first;
  ParamGroup group;
};

// One thread block for 256 elements: dequantise with the old absmax, update with the fresh moments, quantise.
template <class T>
struct Adam8bit {
  struct Shared {
    QuantMap signed_map, unsigned_map;
    AdamMath<T> math[kParamGroups];
    T m[kQuantBlock], v[kQuantBlock];
  };
  AdamRule rule;
  NeverZero second;
  const StepScalars* step;
  QuantMap signed_map, unsigned_map;
  EntryList<Adam8bitEntry<T>, 384> list;

  template <class Group>
  KERNEL void operator()(Group& g) const {
    Shared& shared = *g.template shared<Shared>();
    load_map(g, &shared.signed_map, signed_map);
    load_map(g, &shared.unsigned_map, unsigned_map);
    const AdamMath<T>* maths = shared_adam(g, shared.math, rule, step);
    for (int64_t piece = g.block(); piece < list.pieces; piece += g.blocks()) {
      const Adam8bitEntry<T>& p = list.of(piece);
      const AdamMath<T> math = maths[static_cast<int>(p.group)];
      const int64_t block = piece - p.first, first = block * kQuantBlock;
      const int n = elements_of_block(block, p.count);
      const float old_m = p.absmax_m[block], old_v = p.absmax_v[block];
      for (int i = g.thread(); i < n; i += g.threads()) {
        T m = static_cast<T>(shared.signed_map.value[p.m8[first + i]] * old_m),
          v = static_cast<T>(shared.unsigned_map.value[p.v8[first + i]] * old_v);
        // A gradient that is NaN or infinite resets its moments and leaves the weight.
        const T d = p.grad[first + i], u = math.update(d, m, v);
        const bool finite = d - d == T(0);
        if (finite) p.w[first + i] = math.apply(p.w[first + i], u);
        shared.m[i] = finite ? m : T(0);
        shared.v[i] = finite ? v : T(0);
      }
      const float new_m = quantise_block(g, shared.signed_map, true, NeverZero::negative, shared.m, n, p.m8 + first);
      const float new_v = quantise_block(g, shared.unsigned_map, false, second, shared.v, n, p.v8 + first);
      if (g.thread() == 0) {
        p.absmax_m[block] = new_m;
        p.absmax_v[block] = new_v;
      }
    }
  }
};

template <class T>
struct Quantise8bit {
  int64_t blocks, count;
  const T* x;
  uint8_t* codes;
  float* absmax;
  bool is_signed;
  NeverZero never;
  QuantMap map;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    QuantMap* shared = g.template shared<QuantMap>();
    load_map(g, shared, map);
    g.sync();
    for (int64_t block = g.block(); block < blocks; block += g.blocks()) {
      const int64_t first = block * kQuantBlock;
      const float largest = quantise_block(g, *shared, is_signed, never, x + first, elements_of_block(block, count), codes + first);
      if (g.thread() == 0) absmax[block] = largest;
    }
  }
};

template <class T>
struct Dequantise8bit {
  int64_t count;
  T* x;
  const uint8_t* codes;
  const float* absmax;
  QuantMap map;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    QuantMap* shared = g.template shared<QuantMap>();
    load_map(g, shared, map);
    g.sync();
    for (int64_t i = first_element(g); i < count; i += all_threads(g))
      x[i] = static_cast<T>(shared->value[codes[i]] * absmax[i / kQuantBlock]);
  }
};

// ---- int8 stash -----------------------------------------------------------------------------------------------------

// range_of_piece (groups, pieces, 2) = smallest and largest entry of each group of columns in a piece of the rows.
template <class T>
struct StashRanges {
  int64_t rows, width, groups, pieces;
  const T* x;
  T* range_of_piece;
  bool whole;  // of_fours() of each row's part in a group
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int64_t part = width / groups, fours = ceil_div(part, 4);
    for (int64_t item = g.block(); item < groups * pieces; item += g.blocks()) {
      const int64_t group = item / pieces;
      const Range range = Range{0, rows}.piece(item % pieces, pieces);
      T low = static_cast<T>(INFINITY), high = -static_cast<T>(INFINITY);
      for (int64_t e = g.thread(); e < (range.end - range.begin) * fours; e += g.threads()) {
        const int64_t j = e % fours * 4;
        const Four<T> values = read_four(x + (range.begin + e / fours) * width + group * part, j, part, whole);
        for (int l = 0; l < 4; ++l) {
          if (j + l >= part) continue;
          low = values.v[l] < low ? values.v[l] : low;
          high = values.v[l] > high ? values.v[l] : high;
        }
      }
      low = g.reduce(low, Smallest{});
      high = g.reduce(high, Largest{});
      if (g.thread() == 0) {
        range_of_piece[2 * item] = low;
        range_of_piece[2 * item + 1] = high;
      }
    }
  }
};

// One thread a group: updates the running range and stores the pair that this call uses.
template <class T>
struct StashPair {
  int64_t pieces;
  bool any;  // false: no rows, the range stays
  T decay;
  const T* range_of_piece;
  T *running, *used;
  KERNEL void operator()(int64_t group) const {
    if (any) {
      const T* found = range_of_piece + 2 * group * pieces;
      T low = found[0], high = found[1];
      for (int64_t piece = 1; piece < pieces; ++piece) {
        low = found[2 * piece] < low ? found[2 * piece] : low;
        high = found[2 * piece + 1] > high ? found[2 * piece + 1] : high;
      }
      const T keep = running[2 * group] < 0 ? T(0) : decay;
      running[2 * group] = keep * running[2 * group] + (1 - keep) * (high - low);
      running[2 * group + 1] = keep * running[2 * group + 1] + (1 - keep) * low;
    }
    const T least = static_cast<T>(kStashMinWidth);
    used[2 * group] = running[2 * group] < least ? least : running[2 * group];
    used[2 * group + 1] = running[2 * group + 1];
  }
};

// The range of an entry's group, for a thread that visits neighbours in order.
template <class T>
struct StashGroup {
  int64_t group, groups, inside, part;
  const T* used;
  T size, low;
  KERNEL StashGroup(int64_t first, int64_t groups, int64_t part, const T* used)
      : group(first / part % groups),
        groups(groups),
        inside(first % part),
        part(part),
        used(used),
        size(used[2 * group]),
        low(used[2 * group + 1]) {}
  KERNEL void next() {
    if (++inside < part) return;
    inside = 0;
    group = group + 1 < groups ? group + 1 : 0;
    size = used[2 * group];
    low = used[2 * group + 1];
  }
};

// A thread codes four neighbours with one Philox draw.
template <class T>
struct StashCodes {
  int64_t count, groups, part;
  const T *x, *used;
  uint8_t* codes;
  uint32_t site;
  const StepScalars* step;
  bool aligned;  // of_fours(), but for the last ones
  KERNEL void operator()(int64_t four) const {
    const uint64_t before = step->part * static_cast<uint64_t>((count + 3) / 4);  // of earlier parts
    const Philox::Block drawn = Philox{step->seed, static_cast<uint32_t>(step->step), site}.draw(before + static_cast<uint64_t>(four));
    const int64_t first = 4 * four;
    const bool whole = aligned && first + 4 <= count;
    const Four<T> values = read_four(x, first, count, whole);
    StashGroup<T> group(first, groups, part, used);
    Four<uint8_t> out;
    for (int l = 0; l < 4; ++l) {
      const T u = static_cast<T>(uniform_half(drawn.v[l]));
      out.v[l] = static_cast<uint8_t>(stash_code(values.v[l], group.low, T(255) / group.size, u));
      group.next();
    }
    write_four(codes, first, count, whole, out);
  }
};

template <class T>
struct StashLoad {
  int64_t count, groups, part;
  T* x;
  const uint8_t* codes;
  const T* used;
  bool aligned;  // of_fours(), but for the last ones
  KERNEL void operator()(int64_t four) const {
    const int64_t first = 4 * four;
    const bool whole = aligned && first + 4 <= count;
    const Four<uint8_t> in = read_four(codes, first, count, whole);
    StashGroup<T> group(first, groups, part, used);
    Four<T> out;
    for (int l = 0; l < 4; ++l) {
      out.v[l] = static_cast<T>(in.v[l]) * (group.size / T(255)) + group.low;
      group.next();
    }
    write_four(x, first, count, whole, out);
  }
};

// ---- bf16 -----------------------------------------------------------------------------------------------------

// `step` is null: to the nearest, else at random; the words of a Philox block are four.
template <class T>
struct Bf16Keep {
  int64_t count;
  uint16_t* codes;
  const T* x;
  uint32_t site;
  const StepScalars* step;
  bool aligned;  // of_fours(), but for the last ones
  KERNEL void operator()(int64_t four) const {
    const int64_t first = 4 * four;
    const bool whole = aligned && first + 4 <= count;
    const Four<T> in = read_four(x, first, count, whole);
    Four<uint16_t> out;
    if (step) {
      const Philox::Block drawn = Philox{step->seed, static_cast<uint32_t>(step->step), site}.draw(static_cast<uint64_t>(four));
      for (int l = 0; l < 4; ++l) out.v[l] = bf16_at_random(static_cast<float>(in.v[l]), drawn.v[l]);
    } else {
      for (int l = 0; l < 4; ++l) out.v[l] = bf16_of(static_cast<float>(in.v[l]));
    }
    write_four(codes, first, count, whole, out);
  }
};
template <class T>
struct Bf16Load {
  int64_t count;
  T* x;
  const uint16_t* codes;
  bool aligned;  // of_fours(), but for the last ones
  KERNEL void operator()(int64_t four) const {
    const int64_t first = 4 * four;
    const bool whole = aligned && first + 4 <= count;
    const Four<uint16_t> in = read_four(codes, first, count, whole);
    Four<T> out;
    for (int l = 0; l < 4; ++l) out.v[l] = static_cast<T>(from_bf16(in.v[l]));
    write_four(x, first, count, whole, out);
  }
};

// ---- the ops --------------------------------------------------------------------------------------------------------

inline uint8_t* bytes_in(const Tensor& t) { return static_cast<uint8_t*>(t.raw()); }

template <class M>
void GpuOps<M>::body(const op::Adam8bit& args) {
  begin(args, shape_of_list(args.all, [](const Adam8bitTensors& p) { return p.w.count(); }));
  by_float_type(args.all[0].w, [&](auto type) {
    using T = decltype(type);
    launch_lists(machine_, Adam8bit<T>{args.rule, args.second, scalars_in(args.step), quant_map(true), quant_map(false), {}}, args.all,
                 kQuantBlock, sizeof(typename Adam8bit<T>::Shared), [](const Adam8bitTensors& p) {
                   return std::pair{Adam8bitEntry<T>{p.w.data<T>(), p.g.data<T>(), bytes_in(p.m8), bytes_in(p.v8), p.absmax_m.data<float>(),
                                                     p.absmax_v.data<float>(), p.w.count(), 0, p.group},
                                    p.absmax_m.count()};
                 });
  });
}

template <class M>
void GpuOps<M>::body(const op::Dequantise8bit& args) {
  begin(args, args.x.shape());
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    machine_.launch(
        over_elements(args.x.count(), sizeof(QuantMap)),
        Dequantise8bit<T>{args.x.count(), args.x.data<T>(), bytes_in(args.codes), args.absmax.data<float>(), quant_map(args.is_signed)});
  });
}

template <class M>
void GpuOps<M>::body(const op::Quantise8bit& args) {
  begin(args, args.x.shape());
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    machine_.launch(over_items(args.absmax.count(), kQuantBlock, sizeof(QuantMap)),
                    Quantise8bit<T>{args.absmax.count(), args.x.count(), args.x.data<T>(), bytes_in(args.codes), args.absmax.data<float>(),
                                    args.is_signed, args.never, quant_map(args.is_signed)});
  });
}

template <class M>
void GpuOps<M>::body(const op::Int8Keep& args) {
  begin(args, args.x.shape());
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const int64_t rows = args.x.size(0), width = args.x.size(1), groups = args.groups, part = width / groups;
    constexpr int64_t kMostPieces = 128;  // one thread compares what they found
    const int64_t pieces = std::clamp<int64_t>(std::min(rows, 512 / groups), 1, kMostPieces);
    T* found = machine_.template scratch<T>(2 * groups * pieces);
    if (args.x.count() > 0)
      machine_.launch(over_items(groups * pieces, ceil_div(rows, pieces) * ceil_div(part, 4)),
                      StashRanges<T>{rows, width, groups, pieces, args.x.data<T>(), found, of_fours(part, args.x.data<T>())});
    each(groups, StashPair<T>{pieces, args.x.count() > 0, static_cast<T>(args.decay), found, args.range.data<T>(), args.used.data<T>()});
    const bool aligned = of_fours(0, args.x.data<T>(), bytes_in(args.codes));
    each(ceil_div(args.x.count(), 4), StashCodes<T>{args.x.count(), groups, part, args.x.data<T>(), args.used.data<T>(),
                                                    bytes_in(args.codes), args.site, scalars_in(args.step), aligned});
  });
}

template <class M>
void GpuOps<M>::body(const op::Int8Load& args) {
  begin(args, args.x.shape());
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const int64_t count = args.x.count(), groups = args.groups;
    T* x = args.x.data<T>();
    const uint8_t* codes = bytes_in(args.codes);
    each(ceil_div(count, 4), StashLoad<T>{count, groups, args.x.size(1) / groups, x, codes, args.used.data<T>(), of_fours(0, x, codes)});
  });
}

template <class M>
void GpuOps<M>::body(const op::Bf16Keep& args) {
  begin(args, args.x.shape());
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T* x = args.x.data<T>();
    uint16_t* codes = args.codes.data<uint16_t>();
    each(ceil_div(args.x.count(), 4),
         Bf16Keep<T>{args.x.count(), codes, x, args.site, args.step ? scalars_in(args.step) : nullptr, of_fours(0, x, codes)});
  });
}

template <class M>
void GpuOps<M>::body(const op::Bf16Load& args) {
  begin(args, args.x.shape());
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    T* x = args.x.data<T>();
    const uint16_t* codes = args.codes.data<uint16_t>();
    each(ceil_div(args.x.count(), 4), Bf16Load<T>{args.x.count(), x, codes, of_fours(0, x, codes)});
  });
}

}  // namespace comera::gpu
