// Handles without memory, as in a dry run.
#pragma once
#include "tests/ops/host.h"

namespace comera::test {

inline Tensor dry(Shape shape, DType dtype = DType::f32) { return Tensor(nullptr, shape, dtype); }
inline Tensor ints(Shape shape) { return dry(shape, DType::i32); }
inline Tensor bytes(Shape shape) { return dry(shape, DType::u8); }
inline Tensor step() { return bytes({int64_t{sizeof(StepScalars)}}); }
inline Tensor results() { return bytes({int64_t{sizeof(StepResults)}}); }
inline Sequences sequences(int64_t count, int64_t longest) { return {ints({count}), ints({count}), longest}; }
inline RankTable table() { return {dry({7}), ints({4}), ints({3}), ints({5}), dry({2})}; }

}  // namespace comera::test
