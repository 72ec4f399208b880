// The view that a kernel's body has of its machine. A body is a struct of plain values with
//     template <class Group> KERNEL void operator()(Group& g) const;
// called for every thread. The group is one block of threads:
//     g.thread(), g.threads()     this thread's number in the block, threads in a block
//     g.block(), g.blocks()       the block's number, blocks in the grid (64-bit)
//     g.sync()                    barrier: every thread of the block must reach it
//     g.reduce(value, combine)    combines the values of all threads, result in all; every thread must reach it
//     g.template shared<T>()      the block's shared memory, of the size given at launch
//     Group::Strip, Group::Rows   products whose results stay in registers (strip.h); every thread must reach them
// Bodies stride over threads and blocks, so every launch shape is right, even a block of one thread. A body with kAsLaunched is the exception:
// each warp has work of its own, so its blocks always have the threads that it asks for. The same body runs on a
// GPU (cuda_machine.h) and, in tests, on the CPU (tests/gpu/emulated_machine.h).
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/hd.h"
#include "core/base/rounding.h"

// UNROLL before a loop of constant length: arrays that it indexes can stay in registers.
#ifdef __CUDACC__
#define KERNEL __device__
#define UNROLL _Pragma("unroll")
#else
#define KERNEL
#define UNROLL
#endif

namespace comera::gpu {

struct LaunchShape {
  int64_t blocks = 0;  // 0: nothing to do
  int threads = 0;
  int64_t shared_bytes = 0;
};

inline constexpr int kWarp = 32, kBlock = 256;     // threads; no block is larger
inline constexpr int64_t kMostBlocks = 1 << 16;    // with more items, blocks stride over them
inline constexpr int64_t kBodyBytes = 32764;       // largest body: limit of kernel arguments from CUDA 12.1 on
inline constexpr int64_t kSharedBytes = 96 << 10;  // compute capability 8.0 and later have at least 99 KiB a block

// One element a thread.
inline LaunchShape over_elements(int64_t count, int64_t shared_bytes = 0) {
  return {std::min(ceil_div(count, kBlock), kMostBlocks), kBlock, shared_bytes};
}
// One item a block, whose `width` elements the threads share.
inline LaunchShape over_items(int64_t items, int64_t width, int64_t shared_bytes = 0) {
  const int64_t threads = std::clamp<int64_t>(round_up(width, kWarp), kWarp, kBlock);
  return {std::min(items, kMostBlocks), static_cast<int>(threads), shared_bytes};
}

// The elements of thread t: first_element, then every all_threads-th.
template <class Group>
KERNEL int64_t first_element(const Group& g) {
  return g.block() * g.threads() + g.thread();
}
template <class Group>
KERNEL int64_t all_threads(const Group& g) {
  return g.blocks() * g.threads();
}

// Body: f(i) for i < count.
template <class F>
struct Elements {
  int64_t count;
  F f;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t i = first_element(g); i < count; i += all_threads(g)) f(i);
  }
};

// Four neighbours: one access, of 16 bytes in f32, 8 in codes of two bytes, 4 in codes of one.
template <class T>
struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) Four {
  T v[4];
};
template <class T>
HD const Four<T>& four_at(const T* x) {
  return *reinterpret_cast<const Four<T>*>(x);
}
template <class T>
HD Four<T>& four_at(T* x) {
  return *reinterpret_cast<Four<T>*>(x);
}
// x[0 .. 3] = four in global memory, in one access: nvcc 13.0 makes four stores of most of those that follow each other.
template <class T>
KERNEL void store_four(T* x, const Four<T>& four) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, float>)
    return __stwb(reinterpret_cast<float4*>(x), make_float4(four.v[0], four.v[1], four.v[2], four.v[3]));
#endif
  *reinterpret_cast<Four<T>*>(x) = four;
}
// Whether each row of these matrices can be accessed as Four: `columns` a multiple of 4, memory aligned. Null ones are skipped.
template <class... T>
bool of_fours(int64_t columns, const T*... matrices) {
  return columns % 4 == 0 && (... && (reinterpret_cast<uintptr_t>(matrices) % alignof(Four<T>) == 0));
}
// x[i .. i+3], entries from `count` on as 0; `whole`: of_fours().
template <class T>
KERNEL Four<T> read_four(const T* x, int64_t i, int64_t count, bool whole) {
  if (whole) return four_at(x + i);
  Four<T> four = {};
  for (int l = 0; l < 4; ++l)
    if (i + l < count) four.v[l] = x[i + l];
  return four;
}
template <class T>
KERNEL void write_four(T* x, int64_t i, int64_t count, bool whole, const Four<T>& four) {
  if (whole) {
    store_four(x + i, four);
    return;
  }
  for (int l = 0; l < 4; ++l)
    if (i + l < count) x[i + l] = four.v[l];
}

// body(i) for every fourth i < count, split over the threads of a block. The split is the same in every such loop.
template <class Group, class Body>
KERNEL void each_four(const Group& g, int64_t count, const Body& body) {
  for (int64_t i = 4 * g.thread(); i < count; i += 4 * g.threads()) body(i);
}

// The fours of each_four() in two parts: body(s, j) for the first kHeld of a thread, in turns s that are known to the compiler, so that
// an array of kHeld fours stays in registers; and body(j) for those after the first `skipped`.
template <int kHeld, class Group, class Body>
KERNEL void each_held(const Group& g, int64_t count, const Body& body) {
  UNROLL
  for (int s = 0; s < kHeld; ++s) {
    const int64_t i = 4 * (g.thread() + int64_t{s} * g.threads());
    if (i < count) body(s, i);
  }
}
template <class Group, class Body>
KERNEL void each_further(const Group& g, int skipped, int64_t count, const Body& body) {
  for (int64_t i = 4 * (g.thread() + int64_t{skipped} * g.threads()); i < count; i += 4 * g.threads()) body(i);
}

// Two values that are reduced at once.
template <class T>
struct Two {
  T a, b;
};

struct Sum {
  template <class T>
  HD T operator()(T a, T b) const {
    return a + b;
  }
  template <class T>
  HD Two<T> operator()(Two<T> x, Two<T> y) const {
    return {x.a + y.a, x.b + y.b};
  }
};
// Largest and Smallest skip NaN.
struct Largest {
  template <class T>
  HD T operator()(T a, T b) const {
    return b > a || a != a ? b : a;
  }
};
struct Smallest {
  template <class T>
  HD T operator()(T a, T b) const {
    return b < a || a != a ? b : a;
  }
};

// Piece `piece` of `pieces` of [begin, end): the same split whatever the shape of the launch.
struct Range {
  int64_t begin, end;
  HD Range piece(int64_t piece, int64_t pieces) const {
    const int64_t count = end - begin;
    return {begin + count * piece / pieces, begin + count * (piece + 1) / pieces};
  }
};

}  // namespace comera::gpu
