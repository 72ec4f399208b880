#include "tests/gpu/ptx/actions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>

#include "tests/gpu/ptx/warp.h"

namespace comera::ptx {
namespace {

template <class Body>
inline void each_lane(uint32_t lanes, const Body& body) {
  if (lanes == ~0u)
    for (int lane = 0; lane < kLanes; ++lane) body(lane);
  else
    for (; lanes != 0; lanes &= lanes - 1) body(std::countr_zero(lanes));
}

struct Table {
  std::map<std::string, Operation> all;

  // result = f(sources...) in every lane.
  template <class Result, class... Sources, class F>
  void add(const std::string& name, F) {
    all[name] = {[](Warp& warp, const Instruction& i, uint32_t lanes) {
                   apply<Result, Sources...>(warp, i, lanes, F{}, std::index_sequence_for<Sources...>());
                 },
                 {static_cast<int>(sizeof(Result)), static_cast<int>(sizeof(Sources))...},
                 false};
  }
  template <class Result, class... Sources, class F, size_t... K>
  static void apply(Warp& warp, const Instruction& i, uint32_t lanes, F f, std::index_sequence<K...>) {
    Result* result = warp.row<Result>(i.at[0]);
    each_lane(lanes, [&](int lane) { result[lane] = static_cast<Result>(f(warp.row<Sources>(i.at[K + 1])[lane]...)); });
  }

  // A predicate of two numbers.
  template <class T, class F>
  void compare(const std::string& name, F) {
    all[name] = {[](Warp& warp, const Instruction& i, uint32_t lanes) {
                   const T *a = warp.row<T>(i.at[1]), *b = warp.row<T>(i.at[2]);
                   uint32_t holds = 0;
                   for (int lane = 0; lane < kLanes; ++lane) holds |= static_cast<uint32_t>(F{}(a[lane], b[lane])) << lane;
                   uint32_t& bits = warp.bits(i.at[0]);
                   bits = (bits & ~lanes) | (holds & lanes);
                 },
                 {0, static_cast<int>(sizeof(T)), static_cast<int>(sizeof(T))},
                 false};
  }

  // A predicate of predicates, given as bits.
  template <class F>
  void logic(const std::string& name, int sources, F) {
    all[name] = {[](Warp& warp, const Instruction& i, uint32_t lanes) {
                   const uint32_t holds = F{}(warp.bits(i.at[1]), warp.bits(i.at[2]));
                   uint32_t& bits = warp.bits(i.at[0]);
                   bits = (bits & ~lanes) | (holds & lanes);
                 },
                 std::vector<int>(static_cast<size_t>(sources) + 1, 0), false};
  }
};

template <class T>
using Unsigned = std::make_unsigned_t<T>;

// Without the undefined overflow of signed numbers, and of the small ones that become int.
template <class T, class F>
T wrapping(T a, T b, F f) {
  return static_cast<T>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

template <class T>
void whole_numbers(Table& t, const std::string& type) {
  using U = Unsigned<T>;
  t.add<T, T, T>("add." + type, [](T a, T b) { return wrapping(a, b, [](uint64_t x, uint64_t y) { return x + y; }); });
  t.add<T, T, T>("sub." + type, [](T a, T b) { return wrapping(a, b, [](uint64_t x, uint64_t y) { return x - y; }); });
  t.add<T, T, T>("mul.lo." + type, [](T a, T b) { return wrapping(a, b, [](uint64_t x, uint64_t y) { return x * y; }); });
  t.add<T, T, T, T>("mad.lo." + type, [](T a, T b, T c) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) + static_cast<uint64_t>(c));
  });
  t.add<T, T>("neg." + type, [](T a) { return static_cast<T>(0 - static_cast<uint64_t>(a)); });
  t.add<T, T, T>("min." + type, [](T a, T b) { return std::min(a, b); });
  t.add<T, T, T>("max." + type, [](T a, T b) { return std::max(a, b); });
  // By zero: all bits, as devices give. The least by -1: itself.
  t.add<T, T, T>("div." + type, [](T a, T b) {
    if (b == 0) return static_cast<T>(~U{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(0 - static_cast<uint64_t>(a));
    return static_cast<T>(a / b);
  });
  t.add<T, T, T>("rem." + type, [](T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return T{0};
    return static_cast<T>(a % b);
  });
  t.add<T, T, uint32_t>("shr." + type, [](T a, uint32_t by) {
    constexpr uint32_t bits = 8 * sizeof(T);
    if (by >= bits) return static_cast<T>(std::is_signed_v<T> && a < 0 ? -1 : 0);
    return static_cast<T>(a >> by);
  });
  t.compare<T>("setp.eq." + type, [](T a, T b) { return a == b; });
  t.compare<T>("setp.ne." + type, [](T a, T b) { return a != b; });
  t.compare<T>("setp.lt." + type, [](T a, T b) { return a < b; });
  t.compare<T>("setp.le." + type, [](T a, T b) { return a <= b; });
  t.compare<T>("setp.gt." + type, [](T a, T b) { return a > b; });
  t.compare<T>("setp.ge." + type, [](T a, T b) { return a >= b; });
}

template <class T>
void bits(Table& t, const std::string& type) {  // T unsigned
  t.add<T, T, T>("and." + type, [](T a, T b) { return a & b; });
  t.add<T, T, T>("or." + type, [](T a, T b) { return a | b; });
  t.add<T, T, T>("xor." + type, [](T a, T b) { return a ^ b; });
  t.add<T, T>("not." + type, [](T a) { return ~a; });
  t.add<T, T, uint32_t>("shl." + type, [](T a, uint32_t by) { return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << by); });
  t.add<T, T, uint32_t>("shr." + type, [](T a, uint32_t by) { return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(a >> by); });
  t.compare<T>("setp.eq." + type, [](T a, T b) { return a == b; });
  t.compare<T>("setp.ne." + type, [](T a, T b) { return a != b; });
}

template <class T>
void floats(Table& t, const std::string& type) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
  for (const char* rounding : {".", ".rn."}) {
    t.add<T, T, T>("add" + (rounding + type), [](T a, T b) { return a + b; });
    t.add<T, T, T>("sub" + (rounding + type), [](T a, T b) { return a - b; });
    t.add<T, T, T>("mul" + (rounding + type), [](T a, T b) { return a * b; });
  }
  t.add<T, T, T>("div.rn." + type, [](T a, T b) { return a / b; });
  t.add<T, T, T, T>("fma.rn." + type, [](T a, T b, T c) { return std::fma(a, b, c); });
  t.add<T, T>("sqrt.rn." + type, [](T a) { return std::sqrt(a); });
  t.add<T, T>("rcp.rn." + type, [](T a) { return T{1} / a; });
  t.add<T, T>("neg." + type, [](T a) { return -a; });
  t.add<T, T>("abs." + type, [](T a) { return std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(a) & ~sign)); });
  t.add<T, T, T>("min." + type, [](T a, T b) { return std::fmin(a, b); });
  t.add<T, T, T>("max." + type, [](T a, T b) { return std::fmax(a, b); });
  t.add<T, T, T>("copysign." + type, [](T a, T b) {  // the sign of a, the rest of b
    return std::bit_cast<T>(static_cast<Bits>((std::bit_cast<Bits>(a) & sign) | (std::bit_cast<Bits>(b) & ~sign)));
  });
  t.add<T, T>("cvt.rni." + type + "." + type, [](T a) { return std::nearbyint(a); });
  t.add<T, T>("cvt.rmi." + type + "." + type, [](T a) { return std::floor(a); });
  t.add<T, T>("cvt.rzi." + type + "." + type, [](T a) { return std::trunc(a); });
  t.compare<T>("setp.eq." + type, [](T a, T b) { return a == b; });
  t.compare<T>("setp.ne." + type, [](T a, T b) { return a < b || a > b; });
  t.compare<T>("setp.lt." + type, [](T a, T b) { return a < b; });
  t.compare<T>("setp.le." + type, [](T a, T b) { return a <= b; });
  t.compare<T>("setp.gt." + type, [](T a, T b) { return a > b; });
  t.compare<T>("setp.ge." + type, [](T a, T b) { return a >= b; });
  t.compare<T>("setp.equ." + type, [](T a, T b) { return !(a < b || a > b); });
  t.compare<T>("setp.neu." + type, [](T a, T b) { return !(a == b); });
  t.compare<T>("setp.ltu." + type, [](T a, T b) { return !(a >= b); });
  t.compare<T>("setp.leu." + type, [](T a, T b) { return !(a > b); });
  t.compare<T>("setp.gtu." + type, [](T a, T b) { return !(a <= b); });
  t.compare<T>("setp.geu." + type, [](T a, T b) { return !(a < b); });
  t.compare<T>("setp.num." + type, [](T a, T b) { return a == a && b == b; });
  t.compare<T>("setp.nan." + type, [](T a, T b) { return a != a || b != b; });
}

// Towards zero, at the ends of To where it does not fit, 0 for NaN.
template <class To, class From>
To whole(From x) {
  if (x != x) return 0;
  constexpr double most = static_cast<double>(std::numeric_limits<To>::max()), least = static_cast<double>(std::numeric_limits<To>::min());
  const double cut = std::trunc(static_cast<double>(x));
  if (cut >= most) return std::numeric_limits<To>::max();
  if (cut <= least) return std::numeric_limits<To>::min();
  return static_cast<To>(cut);
}

template <class To, class From>
void conversions(Table& t, const std::string& to, const std::string& from) {
  const std::string types = to + "." + from;
  if constexpr (std::is_integral_v<To> && std::is_integral_v<From>)
    t.add<To, From>("cvt." + types, [](From x) { return static_cast<To>(x); });
  else if constexpr (std::is_integral_v<To>)
    t.add<To, From>("cvt.rzi." + types, [](From x) { return whole<To>(x); });
  else if constexpr (std::is_integral_v<From> || sizeof(To) < sizeof(From))
    t.add<To, From>("cvt.rn." + types, [](From x) { return static_cast<To>(x); });
  else if constexpr (sizeof(To) > sizeof(From))
    t.add<To, From>("cvt." + types, [](From x) { return static_cast<To>(x); });
}

template <class Body>
void each_type(const Body& body) {
  body(uint16_t{}, "u16"), body(int16_t{}, "s16"), body(uint32_t{}, "u32"), body(int32_t{}, "s32"), body(uint64_t{}, "u64");
  body(int64_t{}, "s64"), body(float{}, "f32"), body(double{}, "f64");
}

// The lane that a lane reads from, and whether it is in reach.
enum class Exchange { butterfly, index, up, down };
template <Exchange how>
void exchange(Warp& warp, const Instruction& i, uint32_t lanes) {
  const uint32_t *a = warp.row<uint32_t>(i.at[1]), *b = warp.row<uint32_t>(i.at[2]), *c = warp.row<uint32_t>(i.at[3]);
  uint32_t read[kLanes] = {}, in_reach = 0;
  each_lane(lanes, [&](int lane) {
    const uint32_t segment = (c[lane] >> 8) & 31, by = b[lane] & 31, self = static_cast<uint32_t>(lane);
    const uint32_t last = (self & segment) | (c[lane] & 31 & ~segment), first = self & segment;
    uint32_t from = 0;
    bool good = false;
    switch (how) {
      case Exchange::butterfly:
        from = self ^ by, good = from <= last;
        break;
      case Exchange::index:
        from = first | (by & ~segment), good = from <= last;
        break;
      case Exchange::up:
        from = self - by, good = static_cast<int>(from) >= static_cast<int>(last);
        break;
      case Exchange::down:
        from = self + by, good = from <= last;
        break;
    }
    if (!good) from = self;
    if (!(lanes >> from & 1)) warp.fault(i, lane, "reads the value of lane " + std::to_string(from) + ", which does not take part");
    read[lane] = a[from];
    in_reach |= static_cast<uint32_t>(good) << lane;
  });
  uint32_t* d = warp.row<uint32_t>(i.at[0]);
  each_lane(lanes, [&](int lane) { d[lane] = read[lane]; });
  if (i.count == 2) {
    uint32_t& bits = warp.bits(i.at[kSecondResult]);
    bits = (bits & ~lanes) | (in_reach & lanes);
  }
}

void ballot(Warp& warp, const Instruction& i, uint32_t lanes) {
  const uint32_t votes = warp.bits(i.at[1]) & lanes;
  uint32_t* d = warp.row<uint32_t>(i.at[0]);
  each_lane(lanes, [&](int lane) { d[lane] = votes; });
}

template <class T>
void select(Table& t, const std::string& name) {
  t.all["selp." + name] = {[](Warp& warp, const Instruction& i, uint32_t lanes) {
                             T* d = warp.row<T>(i.at[0]);
                             const T *a = warp.row<T>(i.at[1]), *b = warp.row<T>(i.at[2]);
                             const uint32_t holds = warp.bits(i.at[3]);
                             each_lane(lanes, [&](int lane) { d[lane] = holds >> lane & 1 ? a[lane] : b[lane]; });
                           },
                           {sizeof(T), sizeof(T), sizeof(T), 0},
                           false};
}

// Ties away from zero, as cvt.rna does; NaN stays one, whichever of its bits are set.
uint32_t tf32_of(uint32_t x) {
  const uint32_t size = x & 0x7fffffff;
  if (size >= 0x7f800000) return size == 0x7f800000 ? x : 0x7fffe000;
  return (x + 0x1000) & ~uint32_t{0x1fff};
}
float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

Table make() {
  Table t;
  whole_numbers<uint16_t>(t, "u16"), whole_numbers<int16_t>(t, "s16"), whole_numbers<uint32_t>(t, "u32");
  whole_numbers<int32_t>(t, "s32"), whole_numbers<uint64_t>(t, "u64"), whole_numbers<int64_t>(t, "s64");
  bits<uint16_t>(t, "b16"), bits<uint32_t>(t, "b32"), bits<uint64_t>(t, "b64");
  // `count` bits from bit `at` on; zeros from beyond the number.
  t.add<uint32_t, uint32_t, uint32_t, uint32_t>("bfe.u32", [](uint32_t x, uint32_t at, uint32_t count) {
    at &= 255, count &= 255;
    const uint32_t from = at < 32 ? x >> at : 0;
    return count < 32 ? from & ((uint32_t{1} << count) - 1) : from;
  });
  floats<float>(t, "f32"), floats<double>(t, "f64");
  // 16-bit adds are written without a sign too.
  t.add<uint32_t, uint16_t, uint16_t>("mul.wide.u16", [](uint16_t a, uint16_t b) { return uint32_t{a} * b; });
  t.add<uint64_t, uint32_t, uint32_t>("mul.wide.u32", [](uint32_t a, uint32_t b) { return uint64_t{a} * b; });
  t.add<int64_t, int32_t, int32_t>("mul.wide.s32", [](int32_t a, int32_t b) { return int64_t{a} * b; });
  t.add<uint32_t, uint32_t, uint32_t>("mul.hi.u32", [](uint32_t a, uint32_t b) { return uint64_t{a} * b >> 32; });
  t.add<int32_t, int32_t, int32_t>("mul.hi.s32", [](int32_t a, int32_t b) { return static_cast<int32_t>(int64_t{a} * b >> 32); });
  t.add<uint32_t, uint32_t>("clz.b32", [](uint32_t a) { return std::countl_zero(a); });
  t.add<uint32_t, uint32_t>("popc.b32", [](uint32_t a) { return std::popcount(a); });
  t.add<uint32_t, uint32_t, uint32_t, uint32_t>("bfe.u32", [](uint32_t a, uint32_t from, uint32_t width) {
    from &= 0xff, width &= 0xff;
    if (from >= 32) return 0u;
    return width >= 32 ? a >> from : a >> from & ((1u << width) - 1);
  });
  // Each half-byte of the selector chooses one of the eight bytes of b and a; its upper bit: that byte's sign instead.
  t.add<uint32_t, uint32_t, uint32_t, uint32_t>("prmt.b32", [](uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t from = uint64_t{b} << 32 | a;
    uint32_t out = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t choice = selector >> 4 * i & 15, byte = static_cast<uint32_t>(from >> 8 * (choice & 7)) & 0xff;
      out |= (choice < 8 ? byte : byte < 0x80 ? 0u : 0xffu) << 8 * i;
    }
    return out;
  });
  t.add<uint32_t, uint32_t, uint32_t>("bmsk.clamp.b32", [](uint32_t from, uint32_t width) {
    if (from >= 32) return 0u;
    const uint32_t ones = width >= 32 ? ~0u : (1u << width) - 1;
    return ones << from;
  });
  each_type([&](auto to, const std::string& to_name) {
    each_type([&](auto from, const std::string& from_name) { conversions<decltype(to), decltype(from)>(t, to_name, from_name); });
  });
  t.add<uint32_t, float>("cvt.rna.tf32.f32", [](float x) { return tf32_of(std::bit_cast<uint32_t>(x)); });
  t.add<float, float>("ex2.approx.ftz.f32", [](float x) { return flushed(std::exp2(flushed(x))); });
  t.add<float, float>("rcp.approx.ftz.f32", [](float x) { return flushed(1.0f / flushed(x)); });
  // Its low half is zero; what follows it makes the rest.
  t.add<double, double>("rcp.approx.ftz.f64", [](double x) { return std::bit_cast<double>(std::bit_cast<uint64_t>(1.0 / x) >> 32 << 32); });
  select<uint16_t>(t, "b16"), select<uint16_t>(t, "u16"), select<uint32_t>(t, "b32"), select<uint32_t>(t, "u32"),
      select<uint32_t>(t, "s32");
  select<uint64_t>(t, "b64"), select<uint64_t>(t, "u64"), select<uint64_t>(t, "s64"), select<float>(t, "f32"), select<double>(t, "f64");
  t.logic("and.pred", 2, [](uint32_t a, uint32_t b) { return a & b; });
  t.logic("or.pred", 2, [](uint32_t a, uint32_t b) { return a | b; });
  t.logic("xor.pred", 2, [](uint32_t a, uint32_t b) { return a ^ b; });
  t.logic("not.pred", 1, [](uint32_t a, uint32_t) { return ~a; });
  t.logic("mov.pred", 1, [](uint32_t a, uint32_t) { return a; });
  t.all["shfl.sync.bfly.b32"] = {exchange<Exchange::butterfly>, {4, 4, 4, 4, 4}, true};
  t.all["shfl.sync.idx.b32"] = {exchange<Exchange::index>, {4, 4, 4, 4, 4}, true};
  t.all["shfl.sync.up.b32"] = {exchange<Exchange::up>, {4, 4, 4, 4, 4}, true};
  t.all["shfl.sync.down.b32"] = {exchange<Exchange::down>, {4, 4, 4, 4, 4}, true};
  t.all["vote.ballot.sync.b32"] = t.all["vote.sync.ballot.b32"] = {ballot, {4, 0, 4}, true};
  t.all["bar.warp.sync"] = {[](Warp& warp, const Instruction&, uint32_t) { warp.lanes_waited(); }, {4}, true};
  return t;
}

// Addresses of the lanes, made into pointers of this machine, where they may be used in this way.
struct Reached {
  uint64_t at[kLanes];
  Reached(Warp& warp, const Instruction& i, int row, uint32_t lanes, int64_t bytes, bool writes, bool atomic) {
    const auto offset = static_cast<uint64_t>(i.offset);
    if (i.address_bytes == 4) {
      const uint32_t* base = warp.row<uint32_t>(row);
      for (int lane = 0; lane < kLanes; ++lane) at[lane] = base[lane] + offset;
    } else {
      const uint64_t* base = warp.row<uint64_t>(row);
      for (int lane = 0; lane < kLanes; ++lane) at[lane] = base[lane] + offset;
    }
    warp.reach(i, lanes, at, bytes, writes, atomic);
  }
  char* operator[](int lane) const { return std::bit_cast<char*>(at[lane]); }
};

// Numbers of type T in memory, registers of type R.
template <class T, class R>
void load_numbers(Warp& warp, const Instruction& i, uint32_t lanes) {
  const Reached from(warp, i, i.at[0], lanes, static_cast<int64_t>(sizeof(T)) * i.count, false, i.is_volatile);
  for (int k = 0; k < i.count; ++k) {
    R* to = warp.row<R>(i.at[static_cast<size_t>(k + 1)]);
    each_lane(lanes, [&](int lane) {
      T value;
      std::memcpy(&value, from[lane] + static_cast<size_t>(k) * sizeof(T), sizeof(T));
      to[lane] = static_cast<R>(value);
    });
  }
}
template <class T, class R>
void store_numbers(Warp& warp, const Instruction& i, uint32_t lanes) {
  const Reached to(warp, i, i.at[0], lanes, static_cast<int64_t>(sizeof(T)) * i.count, true, i.is_volatile);
  for (int k = 0; k < i.count; ++k) {
    const R* from = warp.row<R>(i.at[static_cast<size_t>(k + 1)]);
    each_lane(lanes, [&](int lane) {
      const T value = static_cast<T>(from[lane]);
      std::memcpy(to[lane] + static_cast<size_t>(k) * sizeof(T), &value, sizeof(T));
    });
  }
}
// R at least as wide as T, and two bytes at least.
template <class T>
Action numbers_of(bool loads, int register_bytes) {
  if constexpr (sizeof(T) <= 2)
    if (register_bytes == 2) return loads ? load_numbers<T, uint16_t> : store_numbers<T, uint16_t>;
  if constexpr (sizeof(T) <= 4)
    if (register_bytes == 4) return loads ? load_numbers<T, uint32_t> : store_numbers<T, uint32_t>;
  return loads ? load_numbers<T, uint64_t> : store_numbers<T, uint64_t>;
}

template <class T>
void move(Warp& warp, const Instruction& i, uint32_t lanes) {
  T* d = warp.row<T>(i.at[0]);
  const T* a = warp.row<T>(i.at[1]);
  each_lane(lanes, [&](int lane) { d[lane] = a[lane]; });
}

// A wide register of two narrow ones, the low one first.
template <class Wide, class Narrow>
void together(Warp& warp, const Instruction& i, uint32_t lanes) {
  Wide* d = warp.row<Wide>(i.at[0]);
  const Narrow *low = warp.row<Narrow>(i.at[1]), *high = warp.row<Narrow>(i.at[2]);
  each_lane(lanes, [&](int lane) { d[lane] = static_cast<Wide>(static_cast<Wide>(high[lane]) << 8 * sizeof(Narrow) | low[lane]); });
}
template <class Wide, class Narrow>
void apart(Warp& warp, const Instruction& i, uint32_t lanes) {
  const Wide* a = warp.row<Wide>(i.at[0]);
  Narrow *low = warp.row<Narrow>(i.at[1]), *high = warp.row<Narrow>(i.at[2]);
  each_lane(lanes, [&](int lane) {
    low[lane] = static_cast<Narrow>(a[lane]);
    high[lane] = static_cast<Narrow>(a[lane] >> 8 * sizeof(Narrow));
  });
}

}  // namespace

const Operation* find_operation(const std::string& name) {
  static const Table table = make();
  const auto found = table.all.find(name);
  return found == table.all.end() ? nullptr : &found->second;
}

namespace actions {

Action moves(int bytes) { return bytes == 2 ? move<uint16_t> : bytes == 4 ? move<uint32_t> : move<uint64_t>; }

Action packs(int bytes, bool unpacks) {
  if (bytes == 4) return unpacks ? apart<uint32_t, uint16_t> : together<uint32_t, uint16_t>;
  return unpacks ? apart<uint64_t, uint32_t> : together<uint64_t, uint32_t>;
}

void generic_of_shared(Warp& warp, const Instruction& i, uint32_t lanes) {
  uint64_t* d = warp.row<uint64_t>(i.at[0]);
  const uint64_t* a = warp.row<uint64_t>(i.at[1]);
  each_lane(lanes, [&](int lane) { d[lane] = a[lane] | kSharedWindow; });
}

Action numbers(bool loads, int bytes, bool is_signed, int register_bytes) {
  switch (bytes) {
    case 1:
      return is_signed ? numbers_of<int8_t>(loads, register_bytes) : numbers_of<uint8_t>(loads, register_bytes);
    case 2:
      return is_signed ? numbers_of<int16_t>(loads, register_bytes) : numbers_of<uint16_t>(loads, register_bytes);
    case 4:
      return is_signed ? numbers_of<int32_t>(loads, register_bytes) : numbers_of<uint32_t>(loads, register_bytes);
    default:
      return numbers_of<uint64_t>(loads, register_bytes);
  }
}

void atomic_add(Warp& warp, const Instruction& i, uint32_t lanes) {
  const Reached at(warp, i, i.at[1], lanes, 4, true, true);
  const uint32_t* by = warp.row<uint32_t>(i.at[2]);
  uint32_t* before = warp.row<uint32_t>(i.at[0]);
  each_lane(lanes, [&](int lane) {
    uint32_t value = 0;
    std::memcpy(&value, at[lane], 4);
    const uint32_t sum = value + by[lane];
    std::memcpy(at[lane], &sum, 4);
    before[lane] = value;
  });
}

// Element of A (16 x 8), B (8 x 8) or C and D (16 x 8) in register `number` of a lane, as the PTX manual lays them out.
void multiply_matrices(Warp& warp, const Instruction& i, uint32_t) {
  float a[16][8], b[8][8], c[16][8];
  const auto bits = [&](size_t at, int lane) { return warp.row<uint32_t>(i.at[at])[lane]; };
  const auto operand = [&](size_t at, int lane) {
    return std::bit_cast<float>(bits(at, lane) & ~uint32_t{0x1fff});
  };  // the unit reads 19 bits
  for (int lane = 0; lane < kLanes; ++lane) {
    const int group = lane / 4, of_group = lane % 4;
    for (int number = 0; number < 4; ++number) {
      const int row = group + 8 * (number % 2), term = of_group + 4 * (number / 2);
      a[row][term] = operand(4 + static_cast<size_t>(number), lane);
      c[group + 8 * (number / 2)][2 * of_group + number % 2] = std::bit_cast<float>(bits(10 + static_cast<size_t>(number), lane));
    }
    for (int number = 0; number < 2; ++number) b[of_group + 4 * number][group] = operand(8 + static_cast<size_t>(number), lane);
  }
  for (int row = 0; row < 16; ++row)
    for (int term = 0; term < 8; ++term)
      for (int column = 0; column < 8; ++column) c[row][column] += a[row][term] * b[term][column];
  for (int lane = 0; lane < kLanes; ++lane)
    for (int number = 0; number < 4; ++number)
      warp.row<float>(i.at[static_cast<size_t>(number)])[lane] = c[lane / 4 + 8 * (number / 2)][2 * (lane % 4) + number % 2];
}

}  // namespace actions
}  // namespace comera::ptx
