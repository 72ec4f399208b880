// 8-bit moments in blocks (METHODS.md 13), the int8 stash (METHODS.md 12) and bf16 (METHODS.md 12.3, 18).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/rounding.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/parts.h"
#include "core/cpu/philox_words.h"
#include "core/cpu/typed.h"
#include "core/ops/optimizer_math.h"
#include "core/ops/quant_math.h"
#include "core/ops/small_floats.h"

namespace comera {

namespace {

const QuantMap& quant_map(bool is_signed) {
  static const QuantMap maps[2] = {make_quant_map(false), make_quant_map(true)};
  return maps[is_signed];
}

constexpr int64_t kBlocksAPiece = 16;  // of 256 elements

// Codes of `count` <= 256 numbers by one absmax, which is returned. Loops run bit by bit over all elements: the
// search then vectorises.
template <class T>
float quantise_block(bool is_signed, NeverZero never, const T* x, int count, uint8_t* codes) {
  const QuantMap& map = quant_map(is_signed);
  float scaled[kQuantBlock];
  int code[kQuantBlock];
  T largest = 0;
  for (int i = 0; i < count; ++i) {
    const T size = std::abs(x[i]);
    largest = size > largest ? size : largest;
  }
  const float absmax = static_cast<float>(largest);
  const T divisor = absmax > 0 ? static_cast<T>(absmax) : T(1);  // a block of zeros
  for (int i = 0; i < count; ++i) scaled[i] = static_cast<float>(x[i] / divisor);
  for (int i = 0; i < count; ++i) code[i] = scaled[i] > map.border[127] ? 128 : 0;
  for (int bit = 64; bit > 0; bit >>= 1)
    for (int i = 0; i < count; ++i) code[i] += scaled[i] > map.border[code[i] + bit - 1] ? bit : 0;
  if (never != NeverZero::none)
    for (int i = 0; i < count; ++i) code[i] = guarded_code(never, quant_zero(is_signed), code[i], scaled[i]);
  for (int i = 0; i < count; ++i) codes[i] = static_cast<uint8_t>(code[i]);
  return absmax;
}

int elements_of_block(int64_t block, int64_t count) {
  return static_cast<int>(std::min<int64_t>(kQuantBlock, count - block * kQuantBlock));
}

// One block: decodes the moments with the old absmax, updates with them unrounded, then encodes them.
template <class T>
void adam8bit_block(const AdamMath<T>& math, NeverZero second, int count, T* w, const T* g, uint8_t* m8, uint8_t* v8, float* absmax_m,
                    float* absmax_v) {
  const QuantMap &signed_map = quant_map(true), &unsigned_map = quant_map(false);
  T m[kQuantBlock], v[kQuantBlock];
  const float old_m = *absmax_m, old_v = *absmax_v;
  for (int i = 0; i < count; ++i) m[i] = static_cast<T>(signed_map.value[m8[i]] * old_m);
  for (int i = 0; i < count; ++i) v[i] = static_cast<T>(unsigned_map.value[v8[i]] * old_v);
  const AdamMath<T> rule = math;
  for (int i = 0; i < count; ++i) {
    // A gradient that is NaN or infinite loses its moments and leaves its weight alone.
    const bool finite = std::abs(g[i]) <= std::numeric_limits<T>::max();
    const T u = rule.update(g[i], m[i], v[i]), stepped = rule.apply(w[i], u);
    w[i] = finite ? stepped : w[i];
    m[i] = finite ? m[i] : T(0);
    v[i] = finite ? v[i] : T(0);
  }
  *absmax_m = quantise_block(true, NeverZero::negative, m, count, m8);
  *absmax_v = quantise_block(false, second, v, count, v8);
}

}  // namespace

void CpuOps::body(const op::Adam8bit& args) {
  CHECK(scalars_in(args.step).optimizer_step >= 1, "Adam's bias corrections need step 1 or later");
  by_float_type(args.all[0].w, [&](auto type) {
    using T = decltype(type);
    const AdamOfGroups<T> math(args.rule, scalars_in(args.step));
    for_parts(
        pool_, args.all.view(), kBlocksAPiece, [](const Adam8bitTensors& p) { return p.absmax_m.count(); },
        [&](const Adam8bitTensors& p, int64_t begin, int64_t end) {
          uint8_t *first = static_cast<uint8_t*>(p.m8.raw()), *second = static_cast<uint8_t*>(p.v8.raw());
          for (int64_t block = begin; block < end; ++block) {
            const int64_t at = block * kQuantBlock;
            adam8bit_block(math[p.group], args.second, elements_of_block(block, p.w.count()), p.w.data<T>() + at, p.g.data<T>() + at,
                           first + at, second + at, p.absmax_m.data<float>() + block, p.absmax_v.data<float>() + block);
          }
        });
  });
}

void CpuOps::body(const op::Dequantise8bit& args) {
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const float *value = quant_map(args.is_signed).value, *largest = args.absmax.data<float>();
    const uint8_t* code = static_cast<const uint8_t*>(args.codes.raw());
    T* out = args.x.data<T>();
    pool_.parallel_for(args.x.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = static_cast<T>(value[code[i]] * largest[i / kQuantBlock]);
    });
  });
}

void CpuOps::body(const op::Quantise8bit& args) {
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const bool is_signed = args.is_signed;
    const NeverZero never = args.never;
    const T* in = args.x.data<T>();
    uint8_t* code = static_cast<uint8_t*>(args.codes.raw());
    float* largest = args.absmax.data<float>();
    const int64_t count = args.x.count();
    pool_.parallel_for(args.absmax.count(), kBlocksAPiece, [=](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block)
        largest[block] =
            quantise_block(is_signed, never, in + block * kQuantBlock, elements_of_block(block, count), code + block * kQuantBlock);
    });
  });
}

// ---- int8 stash ---------------------------------------------------------------------------------------------------
namespace {

template <class T>
struct MinMax {
  T low = std::numeric_limits<T>::infinity(), high = -std::numeric_limits<T>::infinity();
  void take(T x) {
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  void take(const T* x, int64_t count) {
    typedef T Vector __attribute__((vector_size(32)));
    constexpr int64_t kLanes = 32 / static_cast<int64_t>(sizeof(T));
    int64_t i = 0;
    if (count >= kLanes) {
      Vector lows = Vector{} + low, highs = Vector{} + high, next;
      for (; i + kLanes <= count; i += kLanes) {
        __builtin_memcpy(&next, x + i, sizeof(Vector));
        lows = next < lows ? next : lows;
        highs = next > highs ? next : highs;
      }
      for (int lane = 0; lane < kLanes; ++lane) {
        take(lows[lane]);
        take(highs[lane]);
      }
    }
    for (; i < count; ++i) take(x[i]);
  }
};

// Smallest and largest entry of each group of features: (blocks of rows, groups) partials, folded by the caller.
template <class T>
std::vector<MinMax<T>>& ranges_of(ThreadPool& pool, const T* x, int64_t rows, int64_t width, int64_t groups) {
  thread_local std::vector<MinMax<T>> partial;
  const int64_t block = std::max<int64_t>(1, kElementGrain / width), blocks = ceil_div(rows, block), part = width / groups;
  partial.assign(static_cast<size_t>(std::max<int64_t>(1, blocks) * groups), {});
  MinMax<T>* out = partial.data();
  pool.parallel_for(blocks, 1, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      for (int64_t row = k * block; row < std::min(rows, (k + 1) * block); ++row)
        for (int64_t group = 0; group < groups; ++group) out[k * groups + group].take(x + row * width + group * part, part);
  });
  for (int64_t k = 1; k < blocks; ++k)
    for (int64_t group = 0; group < groups; ++group) {
      out[group].take(out[k * groups + group].low);
      out[group].take(out[k * groups + group].high);
    }
  return partial;
}

}  // namespace

void CpuOps::body(const op::Int8Keep& args) {
  const StepScalars& scalars = scalars_in(args.step);
  const Philox philox{scalars.seed, static_cast<uint32_t>(scalars.step), args.site};
  const uint64_t before = scalars.part * static_cast<uint64_t>(round_up(args.x.count(), 4));  // words of earlier parts
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const int64_t rows = args.x.size(0), width = args.x.size(1), groups = args.groups, part = width / groups;
    const T* in = args.x.data<T>();
    T *running = args.range.data<T>(), *pair = args.used.data<T>();
    uint8_t* out = static_cast<uint8_t*>(args.codes.raw());
    if (args.x.count() > 0) {
      const std::vector<MinMax<T>>& found = ranges_of(pool_, in, rows, width, groups);
      for (int64_t group = 0; group < groups; ++group) {
        const T low = found[static_cast<size_t>(group)].low, width_now = found[static_cast<size_t>(group)].high - low;
        const T keep = running[2 * group] < 0 ? T(0) : static_cast<T>(args.decay);
        running[2 * group] = keep * running[2 * group] + (1 - keep) * width_now;
        running[2 * group + 1] = keep * running[2 * group + 1] + (1 - keep) * low;
      }
    }
    for (int64_t group = 0; group < groups; ++group) {
      pair[2 * group] = std::max(running[2 * group], static_cast<T>(kStashMinWidth));
      pair[2 * group + 1] = running[2 * group + 1];
    }
    pool_.parallel_for(rows, std::max<int64_t>(1, kElementGrain / 4 / std::max<int64_t>(1, width)), [=](int64_t begin, int64_t end) {
      constexpr int64_t kChunk = 512;
      uint32_t room[philox_room(kChunk)];
      for (int64_t row = begin; row < end; ++row)
        for (int64_t group = 0; group < groups; ++group) {
          const T beta = pair[2 * group + 1], codes_per_unit = T(255) / pair[2 * group];
          const int64_t first = row * width + group * part;
          for (int64_t at = first; at < first + part; at += kChunk) {
            const int64_t count = std::min(kChunk, first + part - at);
            const uint32_t* words = philox_words(philox, before + static_cast<uint64_t>(at), count, room);
            const T* from = in + at;  // locals: a store of bytes may alias anything, and the loop would not vectorise
            uint8_t* to = out + at;
            for (int64_t i = 0; i < count; ++i)
              to[i] = static_cast<uint8_t>(stash_code(from[i], beta, codes_per_unit, static_cast<T>(uniform_half(words[i]))));
          }
        }
    });
  });
}

void CpuOps::body(const op::Int8Load& args) {
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const int64_t width = args.x.size(1), groups = args.groups, part = width / groups;
    const T* pair = args.used.data<T>();
    const uint8_t* in = static_cast<const uint8_t*>(args.codes.raw());
    T* out = args.x.data<T>();
    pool_.parallel_for(args.x.size(0), std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, width)), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t group = 0; group < groups; ++group) {
          const T unit = pair[2 * group] / T(255), beta = pair[2 * group + 1];
          const int64_t first = row * width + group * part;
          for (int64_t i = first; i < first + part; ++i) out[i] = static_cast<T>(in[i]) * unit + beta;
        }
    });
  });
}

// ---- bf16 ---------------------------------------------------------------------------------------------------------
namespace {

// Entries [begin, end), each rounded by a word of its own.
template <class T>
void round_at_random(uint16_t* to, const T* from, int64_t begin, int64_t end, const Philox& philox) {
  constexpr int64_t kChunk = 512;
  uint32_t room[philox_room(kChunk)];
  for (int64_t at = begin; at < end; at += kChunk) {
    const int64_t count = std::min(kChunk, end - at);
    const uint32_t* words = philox_words(philox, static_cast<uint64_t>(at), count, room);
    for (int64_t i = 0; i < count; ++i) to[at + i] = bf16_at_random(static_cast<float>(from[at + i]), words[i]);
  }
}

}  // namespace

void CpuOps::body(const op::Bf16Keep& args) {
  uint16_t* to = args.codes.data<uint16_t>();
  by_float_type(args.x, [&](auto type) {
    const auto* from = args.x.data<decltype(type)>();
    if (args.step) {
      const StepScalars& scalars = scalars_in(args.step);
      const Philox philox{scalars.seed, static_cast<uint32_t>(scalars.step), args.site};
      return pool_.parallel_for(args.x.count(), kElementGrain,
                                [=](int64_t begin, int64_t end) { round_at_random(to, from, begin, end, philox); });
    }
    pool_.parallel_for(args.x.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = bf16_of(static_cast<float>(from[i]));
    });
  });
}

void CpuOps::body(const op::Bf16Load& args) {
  const uint16_t* from = args.codes.data<uint16_t>();
  by_float_type(args.x, [&](auto type) {
    auto* to = args.x.data<decltype(type)>();
    pool_.parallel_for(args.x.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = from_bf16(from[i]);
    });
  });
}

}  // namespace comera
