// A long sequence in little memory: all of its values as long as they are few, then every second, every fourth ...
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace comera {

template <class T>
class Thinned {
 public:
  explicit Thinned(size_t most) : most_(most - most % 2) {}  // even, so that the value after them is kept when they are halved
  void push_back(T value) {
    if (count_++ % stride_ != 0) return;
    if (values_.size() == most_) {
      for (size_t i = 0; i < most_ / 2; ++i) values_[i] = values_[2 * i];
      values_.resize(most_ / 2);
      stride_ *= 2;
    }
    values_.push_back(value);
  }
  const std::vector<T>& values() const { return values_; }  // number 0, stride(), 2 stride() ... of the sequence
  int64_t stride() const { return stride_; }
  int64_t count() const { return count_; }  // of the whole sequence

 private:
  size_t most_;
  int64_t stride_ = 1, count_ = 0;
  std::vector<T> values_;
};

}  // namespace comera
