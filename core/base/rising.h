// Rising numbers, such as the steps of a run. Those that are evenly apart take no memory of their own: what is kept is
// where each even stretch begins. Every number comes back exactly.
#pragma once
#include <algorithm>
#include <compare>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace comera {

template <class Number>
class Rising {
 public:
  using value_type = Number;

  class const_iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = Number;
    using difference_type = std::ptrdiff_t;
    using pointer = const Number*;
    using reference = Number;

    const_iterator() = default;
    const_iterator(const Rising* of, size_t index) : of_(of), index_(index) {}
    Number operator*() const { return (*of_)[index_]; }
    Number operator[](difference_type by) const { return *(*this + by); }
    const_iterator& operator++() { return *this += 1; }
    const_iterator& operator--() { return *this += -1; }
    const_iterator operator++(int) { return std::exchange(*this, *this + 1); }
    const_iterator operator--(int) { return std::exchange(*this, *this - 1); }
    const_iterator& operator+=(difference_type by) {
      index_ = static_cast<size_t>(static_cast<difference_type>(index_) + by);
      return *this;
    }
    const_iterator& operator-=(difference_type by) { return *this += -by; }
    friend const_iterator operator+(const_iterator it, difference_type by) { return it += by; }
    friend const_iterator operator+(difference_type by, const_iterator it) { return it += by; }
    friend const_iterator operator-(const_iterator it, difference_type by) { return it -= by; }
    friend difference_type operator-(const const_iterator& a, const const_iterator& b) {
      return static_cast<difference_type>(a.index_) - static_cast<difference_type>(b.index_);
    }
    friend bool operator==(const const_iterator& a, const const_iterator& b) { return a.index_ == b.index_; }
    friend auto operator<=>(const const_iterator& a, const const_iterator& b) { return a.index_ <=> b.index_; }

   private:
    const Rising* of_ = nullptr;
    size_t index_ = 0;
  };

  Rising() = default;
  explicit Rising(const std::vector<Number>& numbers) {
    for (const Number& number : numbers) push_back(number);
  }

  bool empty() const { return stretches_.empty(); }
  size_t size() const { return empty() ? 0 : stretches_.back().begin + stretches_.back().count; }
  Number operator[](size_t i) const {
    const Stretch& stretch = stretch_of(i);
    return at(stretch, i - stretch.begin);
  }
  Number front() const { return stretches_.front().first; }
  Number back() const { return at(stretches_.back(), stretches_.back().count - 1); }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size()}; }

  void push_back(Number number) {
    if (!empty()) {
      Stretch& last = stretches_.back();
      if (last.count == 1) last.apart = number - last.first;
      if (at(last, last.count) == number) {
        ++last.count;
        return;
      }
    }
    stretches_.push_back({size(), 1, number, Number{}});
  }
  void resize(size_t size) {  // to the first ones
    while (!empty() && stretches_.back().begin >= size) stretches_.pop_back();
    if (!empty()) stretches_.back().count = std::min(stretches_.back().count, size - stretches_.back().begin);
  }
  void clear() { stretches_.clear(); }
  std::vector<Number> all() const { return {begin(), end()}; }
  friend bool operator==(const Rising& a, const Rising& b) { return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin()); }

 private:
  struct Stretch {
    size_t begin, count;  // index of its first number, and how many they are
    Number first, apart;
  };
  static Number at(const Stretch& stretch, size_t i) { return stretch.first + stretch.apart * static_cast<Number>(i); }
  const Stretch& stretch_of(size_t i) const {
    if (stretches_.size() == 1) return stretches_.front();
    const auto after =
        std::upper_bound(stretches_.begin(), stretches_.end(), i, [](size_t index, const Stretch& one) { return index < one.begin; });
    return *std::prev(after);
  }

  std::vector<Stretch> stretches_;  // by their begin
};

}  // namespace comera
