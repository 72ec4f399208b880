// A small handle: address, shape, dtype, and (for temporaries) a lease on a block of the arena. Copying a handle
// shares the block; when the last handle of a temporary goes, its bytes may be used again later in the step.
// A handle of a dry run has no address: ops are checked and counted, nothing is computed.
#pragma once
#include "core/tensor/arena.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace comera {

class Tensor {
 public:
  Tensor() = default;
  // A view of memory somebody else owns (a parameter, a buffer). Null address = dry.
  Tensor(void* data, Shape shape, DType dtype) : data_(data), shape_(shape), dtype_(dtype) {}
  Tensor(void* data, Shape shape, DType dtype, Lease lease) : data_(data), shape_(shape), dtype_(dtype), lease_(std::move(lease)) {}

  explicit operator bool() const { return shape_.rank() > 0; }
  const Shape& shape() const { return shape_; }
  int64_t size(int axis) const { return shape_[axis]; }
  int64_t count() const { return shape_.count(); }
  int64_t bytes() const { return count() * static_cast<int64_t>(size_of(dtype_)); }
  DType dtype() const { return dtype_; }
  void* raw() const { return data_; }
  const Lease& lease() const { return lease_; }

  template <class T>
  T* data() const {
    CHECK(dtype_ == dtype_of<T>, "a " << name_of(dtype_) << " tensor read as " << name_of(dtype_of<T>));
    return static_cast<T*>(data_);
  }

  // The same elements in another shape.
  Tensor view(Shape shape) const {
    CHECK(shape.count() == count(), shape_.text() << " viewed as " << shape.text());
    Tensor out = *this;
    out.shape_ = shape;
    return out;
  }
  // Rows [first, first + rows) of the slowest axis.
  Tensor rows(int64_t first, int64_t rows) const {
    CHECK(shape_.rank() > 0 && first >= 0 && rows >= 0 && first + rows <= shape_[0],
          "rows " << first << "+" << rows << " of " << shape_.text());
    Shape shape{rows};
    for (int axis = 1; axis < shape_.rank(); ++axis) shape.push_back(shape_[axis]);
    Tensor out = *this;
    const int64_t row_bytes = shape_[0] == 0 ? 0 : bytes() / shape_[0];
    if (out.data_) out.data_ = static_cast<char*>(out.data_) + first * row_bytes;
    out.shape_ = shape;
    return out;
  }

 private:
  void* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::f32;
  Lease lease_;
};

// A matrix inside a tensor: rows x cols with `ld` elements from row to row. Lets a product write or read some
// columns of a wider matrix; everything else in the project is contiguous.
struct Mat {
  Tensor tensor;
  int64_t rows = 0, cols = 0, ld = 0, offset = 0;

  Mat(const Tensor& t) : tensor(t), rows(t.size(0)), cols(1) {  // (rows, rest)
    for (int axis = 1; axis < t.shape().rank(); ++axis) cols *= t.size(axis);
    ld = cols;
  }
  Mat(const Tensor& t, int64_t rows, int64_t cols) : tensor(t), rows(rows), cols(cols), ld(cols) {
    CHECK(rows * cols == t.count(), t.shape().text() << " as " << rows << " x " << cols);
  }
  // Columns [first, first + count).
  Mat columns(int64_t first, int64_t count) const {
    CHECK(first >= 0 && count >= 0 && first + count <= cols, "columns " << first << "+" << count << " of " << cols);
    Mat out = *this;
    out.offset += first;
    out.cols = count;
    return out;
  }
  // Rows [first, first + count).
  Mat row_range(int64_t first, int64_t count) const {
    CHECK(first >= 0 && count >= 0 && first + count <= rows, "rows " << first << "+" << count << " of " << rows);
    Mat out = *this;
    out.offset += first * ld;
    out.rows = count;
    return out;
  }
  Mat top(int64_t count) const { return row_range(0, count); }
  template <class T>
  T* data() const {  // null in a dry run
    T* start = tensor.data<T>();
    return start ? start + offset : nullptr;
  }
};

}  // namespace comera
