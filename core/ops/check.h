// How the public calls of Ops look at their arguments: one line a tensor, with a text that names call, tensor, what
// came and what was expected. Included by core/ops/*.cpp only.
#pragma once
#include <initializer_list>
#include <string>

#include "core/ops/ops.h"

namespace comera::ops_check {

inline std::string text(const Tensor& t) { return t ? t.shape().text() + " " + name_of(t.dtype()) : "empty"; }
inline bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

inline void floats(const char* op, const char* name, const Tensor& t) {
  CHECK(t && is_float(t.dtype()), op << ": " << name << " is " << text(t) << ", expected f32 or f64");
}
// A float tensor of `axes` axes.
inline void floats(const char* op, const char* name, const Tensor& t, int axes) {
  floats(op, name, t);
  CHECK(t.shape().rank() == axes, op << ": " << name << " is " << text(t) << ", expected " << axes << " axes");
}
inline void exactly(const char* op, const char* name, const Tensor& t, const Shape& shape, DType dtype) {
  CHECK(t && t.shape() == shape && t.dtype() == dtype,
        op << ": " << name << " is " << text(t) << ", expected " << shape.text() << " " << name_of(dtype));
}
inline void exactly_or_empty(const char* op, const char* name, const Tensor& t, const Shape& shape, DType dtype) {
  if (t) exactly(op, name, t, shape, dtype);
}
// A list has one dtype.
inline void one_type(const char* op, const char* name, const Tensor& t, const Tensor& first) {
  CHECK(t.dtype() == first.dtype(), op << ": " << name << " is " << text(t) << " in a list of " << name_of(first.dtype()));
}
// Where only the number of elements matters: element-wise calls.
inline void counted(const char* op, const char* name, const Tensor& t, int64_t count, DType dtype) {
  CHECK(t && t.count() == count && t.dtype() == dtype,
        op << ": " << name << " is " << text(t) << ", expected " << count << " elements " << name_of(dtype));
}
inline void step_block(const char* op, const Tensor& t) {
  CHECK(t && t.dtype() == DType::u8 && t.bytes() == int64_t{sizeof(StepScalars)},
        op << ": step is " << text(t) << ", expected StepScalars");
}
inline void result_block(const char* op, const Tensor& t) {
  CHECK(t && t.dtype() == DType::u8 && t.bytes() == int64_t{sizeof(StepResults)},
        op << ": results is " << text(t) << ", expected StepResults");
}
// Without dropout nothing is drawn and the block may be left out.
inline void dropout(const char* op, Dropout dropout, const Tensor& step) {
  CHECK(dropout.probability >= 0 && dropout.probability < 1, op << ": dropout probability " << dropout.probability);
  if (dropout.probability > 0) step_block(op, step);
}
inline void group(const char* op, ParamGroup group) {
  CHECK(static_cast<int>(group) >= 0 && static_cast<int>(group) < kParamGroups, op << ": parameter group " << static_cast<int>(group));
}

// Outputs and inputs whose memory must not meet: the result would depend on the order of the loops.
inline void apart(const char* op, const Tensor& y, const Tensor& x) {
  if (!y.raw() || !x.raw()) return;
  const char *y0 = static_cast<const char*>(y.raw()), *x0 = static_cast<const char*>(x.raw());
  CHECK(y0 + y.bytes() <= x0 || x0 + x.bytes() <= y0, op << ": output " << text(y) << " overlaps input " << text(x));
}

// Counts the traffic of a call. A tensor that is read and written is named twice; an empty one costs nothing.
inline void traffic(Ops& ops, const char* op, std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors)
    if (*t) ops.work.other_bytes += static_cast<double>(t->bytes());
  if (ops.dry) return;
  for (const Tensor* t : tensors)
    CHECK(!*t || t->raw() || t->count() == 0, op << ": a tensor " << text(*t) << " of a dry run in a real one");
}

// The last line of a call: counts its traffic and says whether the body must run.
inline bool begin(Ops& ops, const char* op, std::initializer_list<const Tensor*> tensors) {
  traffic(ops, op, tensors);
  if (ops.dry) return ops.notes_workspace();
  if (ops.profile) ops.profile->enter(op, ops.work.gemm_flops, ops.work.other_bytes);
  return true;
}

}  // namespace comera::ops_check
