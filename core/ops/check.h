// How the ops check their arguments: one line a tensor, with a text that names op, tensor, what came and what was expected. For
// core/ops/*.cpp only.
#pragma once
#include <string>

#include "core/ops/op.h"

namespace comera::ops_check {

inline std::string text(const Tensor& t) { return t ? t.shape().text() + " " + name_of(t.dtype()) : "empty"; }
inline bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

inline void check_float(const char* op, const char* name, const Tensor& t) {
  CHECK(t && is_float(t.dtype()), op << ": " << name << " is " << text(t) << ", expected f32 or f64");
}
// A float tensor of `axes` axes.
inline void check_float(const char* op, const char* name, const Tensor& t, int axes) {
  check_float(op, name, t);
  CHECK(t.shape().rank() == axes, op << ": " << name << " is " << text(t) << ", expected " << axes << " axes");
}
inline void check_shape(const char* op, const char* name, const Tensor& t, const Shape& shape, DType dtype) {
  CHECK(t && t.shape() == shape && t.dtype() == dtype,
        op << ": " << name << " is " << text(t) << ", expected " << shape.text() << " " << name_of(dtype));
}
inline void check_shape_or_empty(const char* op, const char* name, const Tensor& t, const Shape& shape, DType dtype) {
  if (t) check_shape(op, name, t, shape, dtype);
}
// A list has one dtype.
inline void check_same_type(const char* op, const char* name, const Tensor& t, const Tensor& first) {
  CHECK(t.dtype() == first.dtype(), op << ": " << name << " is " << text(t) << " in a list of " << name_of(first.dtype()));
}
// Where only the number of elements matters: element-wise ops.
inline void check_count(const char* op, const char* name, const Tensor& t, int64_t count, DType dtype) {
  CHECK(t && t.count() == count && t.dtype() == dtype,
        op << ": " << name << " is " << text(t) << ", expected " << count << " elements " << name_of(dtype));
}
inline void check_inside(const char* op, const char* name, const Mat& a) {
  CHECK(a.tensor, op << ": " << name << " is empty");
  const bool none = a.rows == 0 || a.cols == 0;
  CHECK(a.rows >= 0 && a.cols >= 0 && a.offset >= 0 && a.ld >= a.cols &&
            (none || a.offset + (a.rows - 1) * a.ld + a.cols <= a.tensor.count()),
        op << ": " << name << " " << a.rows << " x " << a.cols << ", row step " << a.ld << ", offset " << a.offset
           << " lies outside its tensor " << text(a.tensor));
}
inline void check_step(const char* op, const Tensor& t) {
  CHECK(t && t.dtype() == DType::u8 && t.bytes() == int64_t{sizeof(StepScalars)},
        op << ": step is " << text(t) << ", expected StepScalars");
}
inline void check_results(const char* op, const Tensor& t) {
  CHECK(t && t.dtype() == DType::u8 && t.bytes() == int64_t{sizeof(StepResults)},
        op << ": results is " << text(t) << ", expected StepResults");
}
// Without dropout nothing is drawn and the block may be left out.
inline void check_dropout(const char* op, Dropout dropout, const Tensor& step) {
  CHECK(dropout.probability >= 0 && dropout.probability < 1, op << ": dropout probability " << dropout.probability);
  if (dropout.probability > 0) check_step(op, step);
}
inline void check_group(const char* op, ParamGroup group) {
  CHECK(static_cast<int>(group) >= 0 && static_cast<int>(group) < kParamGroups, op << ": parameter group " << static_cast<int>(group));
}
inline void check_sequences(const char* op, const Sequences& sequences) {
  CHECK(sequences.starts && sequences.starts.shape().rank() == 1, op << ": starts is " << text(sequences.starts));
  const Shape shape{sequences.starts.size(0)};
  check_shape(op, "starts", sequences.starts, shape, DType::i32);
  check_shape(op, "lengths", sequences.lengths, shape, DType::i32);
}

}  // namespace comera::ops_check
