// What the structs of the ops are made of. An op is a struct in namespace op with
//     name                      in messages and profiles
//     its arguments             outputs first
//     tensors(a, see)           lists every tensor once, by what the op does with it (SeesTensors)
//     check()                   throws where arguments do not fit
//     work(bytes)               only where the work is not the traffic that the list implies
//     large_workspace           true: its body on the CPU takes its working memory from Ops::workspace
// and a line in COMERA_OPS (list.h). Letters: T tokens, D features, S sequences, C classes. "Float" tensors are all of one dtype, f32 or
// f64; indices are i32. `step` is always the StepScalars block as a u8 tensor: random sites and live values are read there, so that a
// captured step can be replayed. "=" overwrites, "+=" adds. Outputs must not alias inputs unless said.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "core/ops/step_block.h"
#include "core/ops/work.h"
#include "core/tensor/tensor.h"

namespace comera {

enum class Role {
  in,        // read
  out,       // overwritten
  inout,     // read and written: its traffic counts twice
  in_place,  // overwritten element by element: may be one of the inputs
  step,      // the StepScalars block: too small to count
};

// Base of whatever visits the tensors of an op: it has see(tensor, role) for Tensor and Mat. An empty tensor is an argument left out.
template <class Self>
struct SeesTensors {
  void in(auto&... t) { (self().see(t, Role::in), ...); }
  void out(auto&... t) { (self().see(t, Role::out), ...); }
  void inout(auto&... t) { (self().see(t, Role::inout), ...); }
  void in_place(auto&... t) { (self().see(t, Role::in_place), ...); }
  void step(auto& t) { self().see(t, Role::step); }
  // A list of structs that list their tensors. Who changes tensors changes a copy of the list.
  template <class List>
  void items(List& list) {
    if constexpr (std::is_const_v<List>)
      for (const auto& item : list) List::Item::tensors(item, self());
    else
      for (auto& item : list.own()) List::Item::tensors(item, self());
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

// The list of a call: a view of the caller's, or a copy that it owns.
template <class T>
class Items {
 public:
  using Item = T;
  template <class List>
  requires std::is_convertible_v<const List&, std::span<const T>> Items(const List& all) : all_(all) {}
  std::span<const T> view() const { return all_; }
  const T* begin() const { return all_.data(); }
  const T* end() const { return all_.data() + all_.size(); }
  const T& operator[](size_t i) const { return all_[i]; }
  size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  std::span<T> own() {
    own_ = std::make_shared<std::vector<T>>(begin(), end());
    all_ = *own_;
    return *own_;
  }

 private:
  std::span<const T> all_;
  std::shared_ptr<std::vector<T>> own_;
};

struct Dropout {
  double probability = 0;  // 0 = off
  uint32_t site = 0;       // Philox site; the mask of element i is half i of (seed, step, site), 16 bits: recomputed, never stored
};

// Sequences in a flat run of tokens (see Batch): starts (S), lengths (S).
struct Sequences {
  Tensor starts, lengths;
  int64_t longest = 0;  // upper bound of a length, for workspace
  static void tensors(auto& a, auto& see) { see.in(a.starts, a.lengths); }
};

}  // namespace comera
