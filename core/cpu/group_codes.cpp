// Codes in groups with a scale and a zero each (METHODS.md 7).
#include <algorithm>

#include "core/cpu/cpu_ops.h"
#include "core/cpu/philox_words.h"
#include "core/cpu/typed.h"

namespace comera {
namespace {

constexpr int64_t kChunk = 512, kRoom = philox_room(kChunk);  // elements, and words of the stream for them

template <class T>
GroupRange<T> range_of(const T* x, int64_t count, int bits) {
  T low = 0, high = 0, bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
    bad += x[i] - x[i];
  }
  return GroupRange<T>::of(low, high, bad, bits);
}

// codes[i] = code_of(i) for begin <= i < end; where two share a byte, begin is even.
template <class CodeOf>
void write_codes(uint8_t* codes, int bits, int64_t begin, int64_t end, const CodeOf& code_of) {
  if (bits == 8) {
    for (int64_t i = begin; i < end; ++i) codes[i] = static_cast<uint8_t>(code_of(i));
    return;
  }
  for (int64_t i = begin; i < end; i += 2) codes[i / 2] = static_cast<uint8_t>(code_of(i) | (i + 1 < end ? code_of(i + 1) << 4 : 0));
}

}  // namespace

void CpuOps::body(const op::GroupQuantise& args) {
  const StepScalars none, &scalars = args.site != 0 ? scalars_in(args.step) : none;
  const Philox stream{scalars.seed, static_cast<uint32_t>(scalars.step), args.site};
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const GroupCodes how = args.how;
    const int64_t count = args.x.count(), groups = how.groups(count);
    const T* x = args.x.data<T>();
    T *scale = args.scale.data<T>(), *zero = args.zero.data<T>();
    uint8_t* codes = static_cast<uint8_t*>(args.codes.raw());
    pool_.parallel_for(groups, std::max<int64_t>(1, kElementGrain / how.group), [=](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        const int64_t first = group * how.group;
        const GroupRange<T> range = range_of(x + first, std::min(how.group, count - first), how.bits);
        scale[group] = range.scale;
        zero[group] = range.zero;
      }
    });
    // Groups may end inside a byte: codes are shared out by bytes.
    const bool stochastic = args.site != 0;
    pool_.parallel_for(ceil_div(count, kChunk), std::max<int64_t>(1, kElementGrain / 4 / kChunk), [=](int64_t begin, int64_t end) {
      uint32_t room[kRoom];
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        const int64_t first = chunk * kChunk, last = std::min(count, first + kChunk);
        const auto range = [=](int64_t i) { return GroupRange<T>{scale[i / how.group], zero[i / how.group]}; };
        if (!stochastic) {
          write_codes(codes, how.bits, first, last, [&](int64_t i) { return range(i).code(x[i], how.bits); });
          continue;
        }
        const uint32_t* words = philox_words(stream, static_cast<uint64_t>(first), last - first, room);
        write_codes(codes, how.bits, first, last,
                    [&](int64_t i) { return range(i).code(x[i], static_cast<T>(uniform_half(words[i - first])), how.bits); });
      }
    });
  });
}

void CpuOps::body(const op::GroupDequantise& args) {
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const GroupCodes how = args.how;
    const T *scale = args.scale.data<T>(), *zero = args.zero.data<T>();
    const uint8_t* codes = static_cast<const uint8_t*>(args.codes.raw());
    T* x = args.x.data<T>();
    pool_.parallel_for(args.x.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        const int64_t group = i / how.group, last = std::min(end, (group + 1) * how.group);
        const GroupRange<T> range{scale[group], zero[group]};
        if (how.bits == 8)
          for (; i < last; ++i) x[i] = range.number(codes[i]);
        else
          for (; i < last; ++i) x[i] = range.number(group_code_at(codes, 4, i));
      }
    });
  });
}

}  // namespace comera
