// A few tensor handles by number, without the heap: a tensor train has at most ten cores, and a steady step allocates
// nothing.
#pragma once
#include <array>
#include <utility>

#include "core/tensor/tensor.h"

namespace comera {

class TensorList {
 public:
  static constexpr size_t kCapacity = 10;  // 5 modes a side

  size_t size() const { return size_; }
  Tensor& operator[](size_t i) { return tensors_[i]; }
  const Tensor& operator[](size_t i) const { return tensors_[i]; }
  Tensor& back() { return tensors_[size_ - 1]; }
  const Tensor& back() const { return tensors_[size_ - 1]; }
  void push_back(Tensor tensor) {
    CHECK(size_ < kCapacity, "more than ten tensors in a list");
    tensors_[size_++] = std::move(tensor);
  }
  void clear() {
    for (size_t i = 0; i < size_; ++i) tensors_[i] = {};
    size_ = 0;
  }
  void reset(size_t size) {  // `size` empty handles
    CHECK(size <= kCapacity, "more than ten tensors in a list");
    clear();
    size_ = size;
  }

 private:
  std::array<Tensor, kCapacity> tensors_;
  size_t size_ = 0;
};

}  // namespace comera
