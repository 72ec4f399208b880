// What is trained, and where it lies. Layers declare their parameters when they are built; ParamSet then takes one
// block of memory a purpose, so the rank vectors of the whole model are one run of numbers (the rank objective reads
// them as such) and the plan is exact. One thread: the trainer's.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "core/ops/device.h"
#include "core/ops/step_block.h"
#include "core/tensor/tensor.h"

namespace comera {

enum class ParamKind : unsigned char {
  tt_core,
  rank_vector,
  weight,
  factor,
  head,
  bias,
  norm,
  table
};  // weight: a matrix inside a block; factor: of one that is a product; head: the last one

struct Init {
  enum Kind : unsigned char { zeros, ones, normal, uniform, orthonormal } kind = zeros;
  double scale = 0;  // normal: standard deviation; uniform: half width; orthonormal: length of the rows, or columns where they are fewer
};

// Format in which a value is stored (METHODS.md 18). Code that computes with a value that may be coded decodes it first (weights.h).
enum class WeightFormat : unsigned char {
  full,  // as the run computes
  bf16,
  int8,  // codes with a scale and a zero for every kWeightGroup entries (METHODS.md 7)
};
inline constexpr int64_t kWeightGroup = 256;

// Where the gradient of a parameter goes (grads.h).
enum class GradWay : unsigned char {
  kept,       // stands in Param::grad until the next step
  summed,     // added to Param::grad, which is cleared before the first part of a batch
  projected,  // as summed, but Param::grad has the smaller shape Param::projected, into which the optimizer brings each part
  rows,       // stands in Param::grad, (N, D), of some rows of a table (V, D): those of Param::rows (op::ScatterDistinctRows)
  given,      // consumed while backward runs: Param::grad is empty and takes no memory
};

struct Param {
  std::string name;  // "enc0.attn.q.core.2"; safetensors and the store use it
  Shape shape;
  ParamKind kind = ParamKind::weight;
  ParamGroup group = ParamGroup::rest;
  Init init;
  Tensor value = {}, grad = {};              // set by ParamSet::allocate, as are
  Tensor scale = {}, zero = {};              // of int8 codes
  bool trainable = true;                     // false: frozen, without gradient and optimizer state
  int64_t places = 1;                        // of a convolution (O, A I): A, the pixels of a window
  int64_t grad_place = 0;                    // of `grad` in all gradients (ParamSet::grads), in numbers
  int uses = 1;                              // contributions to its gradient a pass: 2 for a matrix that is used twice
  Tensor second = {};                        // of 2 uses: the gradient of the second one where `grad` is that of the first alone
  GradWay way = GradWay::kept;               // set before memory is planned
  Shape projected = {};                      // of `grad` where its way is GradWay::projected or rows
  bool by_rows = false;                      // a table whose layer can give its gradient by rows
  Tensor rows = {};                          // (N) of GradWay::rows: a row of the table, each once; -1: none
  WeightFormat format = WeightFormat::full;  // set before memory is planned
  // Of the pass under way: contributions so far, and their sum where it is given away at last.
  int handed_over = 0;
  Tensor pending = {};

  bool has_grad() const { return trainable && way != GradWay::given; }
  const Shape& grad_shape() const { return way == GradWay::projected || way == GradWay::rows ? projected : shape; }

  bool coded() const { return format != WeightFormat::full; }
  DType stored_as(DType run) const { return format == WeightFormat::bf16 ? DType::bf16 : format == WeightFormat::int8 ? DType::u8 : run; }
  // visit(suffix, tensor): every tensor that stores the value; in files its name is the parameter's with the suffix.
  void stored(const auto& visit) const {
    visit("", value);
    if (format != WeightFormat::int8) return;
    visit(".scale", scale);
    visit(".zero", zero);
  }

  int64_t count() const { return shape.count(); }
};

// State that is not trained but belongs to the run (ranges of the int8 stash): saved and restored with it.
struct State {
  std::string name;
  Shape shape;
  Tensor value;
  double initial = 0;
};

// One tensorised layer, as rank control, the store and the views see it.
struct RankLayer {
  std::string name;                          // "enc0.attn.q"
  std::vector<int64_t> mode_sizes;           // l_k, k = 1..K; TTM: rows times columns of core k
  std::vector<int64_t> in_modes, out_modes;  // TT: n_k, m_k; TTM: rows and columns of each core
  std::vector<Param*> cores;                 // K; core k is (r_{k-1}, l_k, r_k), for TTM (r_{k-1}, m_k, n_k, r_k)
  std::vector<Param*> ranks;                 // K - 1 rank vectors
  int64_t rows = 0, columns = 0;             // of the matrix (out, in) or table it stands for; padded modes multiply to more
  int64_t dense_entries() const { return rows * columns; }
};

// Tensors of all parameters as runs of numbers, but for ranks with gaps between them, whose numbers mean nothing.
struct ParamRuns {
  Tensor ranks, rank_grads;  // (N) in the order of rank_layers
  Tensor grads, states;
};

class ParamSet {
 public:
  ParamSet() = default;
  ParamSet(const ParamSet&) = delete;

  Param& add(std::string name, Shape shape, ParamKind kind, ParamGroup group, Init init);
  State& add_state(std::string name, Shape shape, double initial);
  RankLayer& add_rank_layer(RankLayer layer);

  // Sets every `value` and `grad` to its shape without an address: enough for a dry run, nothing is taken.
  void describe(DType dtype);
  // Takes memory for values and gradients and sets every `value` and `grad`; contents are undefined.
  void allocate(Memory& memory, DType dtype);
  // Takes other memory for gradients, whose shapes have changed; their contents are undefined. Values stay.
  void allocate_gradients(Memory& memory);
  // The bytes allocate() would take, by purpose.
  MemoryByPurpose planned(DType dtype) const;
  void release();
  // Initial values, a pure function of (seed, name): drawn on the host in double, so equal on every device.
  void initialise(Device& device, uint64_t seed);

  std::deque<Param>& params() { return params_; }
  const std::deque<Param>& params() const { return params_; }
  std::deque<State>& states() { return states_; }
  const std::deque<State>& states() const { return states_; }
  std::deque<RankLayer>& rank_layers() { return rank_layers_; }
  const std::deque<RankLayer>& rank_layers() const { return rank_layers_; }
  Param* find(const std::string& name);

  Tensor ranks() const { return runs_.ranks; }
  Tensor rank_grads() const { return runs_.rank_grads; }
  Tensor grads() const { return runs_.grads; }
  Tensor all_states() const { return runs_.states; }
  int64_t count() const;             // values of the model
  int64_t trained() const;           // without frozen parameters
  int64_t dense_equivalent() const;  // values of the same model with dense matrices
  DType dtype() const { return dtype_; }

 private:
  std::deque<Param> params_;
  std::deque<State> states_;
  std::deque<RankLayer> rank_layers_;
  std::vector<Buffer> buffers_;
  Buffer gradients_;
  ParamRuns runs_;
  DType dtype_ = DType::f32;
};

// The initial values of a parameter; each `step` above 0 gives another draw.
std::vector<double> drawn_values(const Param& param, uint64_t seed, uint32_t step = 0);

// Copies between host (double) and device, whatever the dtype of `tensor`; for initial values, checkpoints, tests. Numbers become bf16 by
// rounding to nearest.
std::vector<double> to_host(Device& device, const Tensor& tensor);
void from_host(Device& device, const Tensor& tensor, const std::vector<double>& values);
// The value of a parameter, whatever its format; numbers become codes by rounding to nearest.
std::vector<double> to_host(Device& device, const Param& param);
void from_host(Device& device, const Param& param, const std::vector<double>& values);

}  // namespace comera
