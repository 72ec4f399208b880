// Small fixed-capacity shape. Storage convention of the whole project: row-major, contiguous, last index fastest.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace comera {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) {
    for (int64_t size : sizes) push_back(size);
  }

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return sizes_[static_cast<size_t>(axis < 0 ? axis + rank_ : axis)]; }
  std::vector<int64_t> sizes() const { return {sizes_.begin(), sizes_.begin() + rank_}; }
  void push_back(int64_t size) {
    CHECK(rank_ < kMaxRank && size >= 0, "axis size " << size << " at axis " << rank_);
    sizes_[static_cast<size_t>(rank_++)] = size;
  }
  int64_t count() const {  // number of elements; 1 for a scalar
    int64_t product = 1;
    for (int axis = 0; axis < rank_; ++axis) product *= sizes_[static_cast<size_t>(axis)];
    return product;
  }
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int axis = 0; axis < rank_; ++axis)
      if ((*this)[axis] != other[axis]) return false;
    return true;
  }
  std::string text() const {  // "(1024, 768)"
    std::string out = "(";
    for (int axis = 0; axis < rank_; ++axis) out += (axis ? ", " : "") + std::to_string((*this)[axis]);
    return out + ")";
  }

 private:
  std::array<int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

}  // namespace comera
