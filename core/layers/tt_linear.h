// y = x W^T + b with W as a tensor train (METHODS.md 1.1): p input modes and q output modes, 1 to 5 each, K = p + q
// cores U_k (r_{k-1}, l_k, r_k), rank vectors D_k (r_k) on the K - 1 bonds. E_k = U_k * thr(D_k) along the last axis,
// E_K = U_K. Letters: T tokens, I and O the true sizes, N and M what the modes multiply to (>= I, O), r = r_p.
//
// The modes and ranks are read from the parameters at each forward, so a layer goes on after its ranks were cut.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "core/base/rounding.h"
#include "core/config/tt_shape.h"
#include "core/layers/factory.h"
#include "core/layers/tt_calls.h"
#include "core/tensor/tensor_list.h"

namespace comera {

// What a TT matrix is made of.
struct TTMatrix {
  TTShape shape;              // ranks: as the cores are now
  std::vector<Param*> cores;  // K
  std::vector<Param*> ranks;  // K - 1
  Param* bias = nullptr;      // (O)

  size_t inputs() const { return shape.in_modes.size(); }         // p
  size_t outputs() const { return shape.out_modes.size(); }       // q
  int64_t middle_rank() const { return shape.ranks[inputs()]; }   // r
  size_t turns() const { return std::max(inputs(), outputs()); }  // of merges and sweeps
  void read_ranks();
  // E_k, k = 1..K as index k - 1: masked copies of the cores, the last one is the core itself.
  TensorList effective(Ctx& ctx, TTCalls& calls) const;
};

// Room for the gradients of a TT matrix during one backward pass (grads.h).
struct TTGradients {
  TensorList cores, ranks;  // K and K - 1
  Tensor bias;

  void begin(Ctx& ctx, const TTMatrix& matrix);
  // Room for the gradient of L, V (N, r), 0 in the rows from I on. With one input mode it is dE_1 itself.
  Tensor left(Ctx& ctx, const TTMatrix& matrix) const;
  // On entry cores[k] holds dE_k, on exit dU_k; writes the gradients of the rank vectors.
  void mask(Ctx& ctx, const TTMatrix& matrix, TTCalls& calls) const;
  void hand_over(Ctx& ctx, const TTMatrix& matrix);
};

// The layer's input as backward finds it: restored when it is needed, not before, and given up at once.
struct KeptInput {
  StashSlot slot;
  Kept kept;
  Tensor take(Ctx& ctx) {
    Tensor x = ctx.stash.load(ctx, slot, kept);
    kept = {};
    return x;
  }
};

// Both halves are merged first: L = E_1..E_p (N, r), R = E_{p+1}..E_K (r, M), y = (x L) R. The bias rides in the
// product: T1 = [x L, 1] (T, r+1) and [R; b] (r+1, M), so neither b nor its gradient needs a pass of its own. What of it
// is the matrix's own is here; the products with x and dx are TTFan's. T1 may be wider: then it is 0 behind the ones, and b
// stands in all rows behind R.
//
// The merges depend on the parameters alone, and the gradients of the cores on S and V alone, so both are made for many
// layers together, from collected calls: begin_merge and the turns of merge_* before forward, begin_sweep, the turns of
// sweep_*, and end_sweep after backward. Turns count from 1; the calls of a turn wait for those of the turn before.
class TTMerged {
 public:
  // each(body) calls body(merged, matrix, width of T1) for each layer. Returns the turns: 0 without layers.
  template <class Each>
  static size_t merge_all(Ctx& ctx, TTCalls& calls, const Each& each);
  template <class Each>
  static void sweep_all(Ctx& ctx, TTCalls& calls, const Each& each);  // calls of begin_sweep, all turns, end_sweep
  template <class Each>
  static void hand_over_all(Ctx& ctx, TTCalls& calls, const Each& each);  // the gradients, after sweep_all

  void begin_merge(Ctx& ctx, const TTMatrix& matrix, int64_t width, TTCalls& calls);
  void merge_left(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls);
  void merge_right(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls);
  Tensor take_left();                                                         // L (N, r), when it is merged
  void hold(Tensor t1, int64_t first);                                        // T1 (T, width) is columns of `t1` from `first` on
  Tensor output(Ctx& ctx, const TTMatrix& matrix) const;                      // y (T, O) from T1, until backward_cores
  Mat input() const { return Mat(t1_).columns(first_, with_bias_.size(0)); }  // T1
  Mat right(const TTMatrix& matrix) const { return Mat(with_bias_).columns(0, matrix.shape.out); }  // [R; b; ...] (width, O)
  const Tensor& whole_right() const { return with_bias_; }                                          // [R; b; ...] (width, M)
  const Tensor& whole_cores() const { return s_; }  // T2 (width, M), from begin_cores to begin_sweep
  void drop_input() { t1_ = {}; }
  void drop_right() { with_bias_ = right_[0] = {}; }
  Mat begin_cores(Ctx& ctx, const TTMatrix& matrix);                                        // room for T2 (width, O)
  Mat cores(const TTMatrix& matrix) const { return Mat(s_).columns(0, matrix.shape.out); }  // T2, from there to begin_sweep
  void backward_cores(Ctx& ctx, const TTMatrix& matrix, const Tensor& dy);                  // T2 = T1^T dY; T1 goes
  Tensor left_gradient(Ctx& ctx, const TTMatrix& matrix) const { return gradients_.left(ctx, matrix); }
  // U1 (T, r) = dY R^T, or as much of [U1, dY b, ...] (T, width) as u1 has columns.
  void backward_left(Ctx& ctx, const TTMatrix& matrix, const Tensor& dy, const Mat& u1);
  void begin_sweep(const TTMatrix& matrix, TTCalls& calls, Tensor v);  // V (N, r) = X^T U1
  void sweep_right(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls);
  void sweep_left(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls);
  void end_sweep(Ctx& ctx, const TTMatrix& matrix, TTCalls& calls);
  void hand_over(Ctx& ctx, const TTMatrix& matrix);  // once the calls of end_sweep are made
  void drop() { *this = {}; }

 private:
  TensorList effective_;  // E_k
  TensorList left_;       // L_k (n_1..n_k, r_k), k = 1..p
  TensorList right_;      // R_k (r_{p+k-1}, m_k..m_q), k = 1..q; the first is the top of with_bias_
  Tensor with_bias_;      // [R; b; ...] (width, M)
  Tensor t1_;             // T1: columns of it, from first_ on
  int64_t first_ = 0;
  Tensor s_;  // T2, then what the sweep to the right has left of it
  Tensor v_;  // V, and to the left
  TTGradients gradients_;
};

template <class Each>
size_t TTMerged::merge_all(Ctx& ctx, TTCalls& calls, const Each& each) {
  size_t turns = 0;
  each([&](TTMerged& merged, const TTMatrix& matrix, int64_t width) {
    merged.begin_merge(ctx, matrix, width, calls);
    turns = std::max(turns, matrix.turns());
  });
  calls.make(ctx);
  for (size_t turn = 1; turn < turns; ++turn) {
    each([&](TTMerged& merged, const TTMatrix& matrix, int64_t) {
      merged.merge_left(ctx, matrix, turn, calls);
      merged.merge_right(ctx, matrix, turn, calls);
    });
    calls.make(ctx);
  }
  return turns;
}

template <class Each>
void TTMerged::sweep_all(Ctx& ctx, TTCalls& calls, const Each& each) {
  calls.make(ctx);
  size_t turns = 0;
  each([&](TTMerged&, const TTMatrix& matrix, int64_t) { turns = std::max(turns, matrix.turns()); });
  for (size_t turn = 1; turn < turns; ++turn) {
    each([&](TTMerged& merged, const TTMatrix& matrix, int64_t) {
      merged.sweep_right(ctx, matrix, turn, calls);
      merged.sweep_left(ctx, matrix, turn, calls);
    });
    calls.make(ctx);
  }
  each([&](TTMerged& merged, const TTMatrix& matrix, int64_t) { merged.end_sweep(ctx, matrix, calls); });
}

template <class Each>
void TTMerged::hand_over_all(Ctx& ctx, TTCalls& calls, const Each& each) {
  calls.make(ctx);
  each([&](TTMerged& merged, const TTMatrix& matrix, int64_t) { merged.hand_over(ctx, matrix); });
}

// Core by core, without merged halves: fewer operations when there are few tokens.
class TTSequential {
 public:
  Tensor forward(Ctx& ctx, const TTMatrix& matrix, Tensor x, TTCalls& calls);
  Tensor backward(Ctx& ctx, const TTMatrix& matrix, KeptInput input, Tensor dy, Tensor into, TTCalls& calls);
  void drop() { *this = {}; }

 private:
  TensorList effective_;  // E_k
  TensorList in_;         // Z_k (r_k, n_{k+1}..n_p, T), k = 1..p
  TensorList out_;        // Y_k (T, m_1..m_k, r_{p+k}), k = 1..q-1
};

enum class TTOrder : unsigned char { cheaper, merged, sequential };

class TTFan;

class TTLinear final : public Layer, public Remake {
 public:
  // `std`: initial standard deviation of an entry of the matrix; 0: 1 / sqrt(N + M).
  TTLinear(const std::string& name, const TTShape& shape, LinearKind kind, LayerFactory& factory, TTOrder order = TTOrder::cheaper,
           double std = 0);
  ~TTLinear() override;

  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;
  Tensor remake(Ctx& ctx) override { return merged_.output(ctx, matrix_); }  // in the merged order
  int depth() const override { return 1; }
  TTFan& alone() { return *alone_; }

 private:
  friend class TTAttention;
  friend class TTFan;
  friend class TTFeedForward;
  friend class TTForm;
  friend class TTRows;
  bool is_sequential(const Ctx& ctx, int64_t tokens) const;

  TTMatrix matrix_;
  const TTOrder order_;
  KeptInput input_;
  TTMerged merged_;
  TTSequential sequential_;
  TTCalls calls_;                 // of a layer by itself
  std::unique_ptr<TTFan> alone_;  // in the merged order, where it does not share its x
  bool grouped_ = false;          // merged before forward, swept after backward, with others (tt_form.cpp)
};

// TT layers that read the same x, in the merged order, or one layer. Their left halves stand side by side in one matrix, so
// that x is read once in forward and once in backward, and dx is written once. A half has L, and zeros where T1 has the
// ones of the bias and what rounds its width up; the half of one layer that is merged by itself is L as it is.
class TTFan {
 public:
  static constexpr int64_t kLine = 4;  // lines of a multiple of 16 bytes are what products on a GPU read fastest

  explicit TTFan(std::vector<TTLinear*> layers) : layers_(std::move(layers)) {}
  bool grouped() const;                                                                    // all its layers are
  TensorList forward(Ctx& ctx, Tensor x) { return leave(ctx, enter(ctx, std::move(x))); }  // y_i
  bool waits() const { return static_cast<bool>(input_.kept); }                            // for the backward of a forward pass
  Tensor backward(Ctx& ctx, TensorList dy, Tensor into);                                   // dx, or added to `into`
  // Of grouped layers (tt_form.cpp): after the merges, before forward, from an edge of edge_height() or more; and after backward,
  // before the turns of the sweeps.
  void join(Ctx& ctx, TTCalls& calls, const Tensor& edge);
  void begin_sweeps(Ctx& ctx, TTCalls& calls);
  void drop();         // what a step that was broken off has left
  int64_t in() const;  // I
  bool has(const TTLinear& layer) const;
  // (1 + height, kLine): what stands in ones_ behind a half, and under it what stands in left_: zeros.
  static Tensor edge(Ctx& ctx, int64_t height);
  int64_t edge_height() const;                                              // I, or as many as have a zero for each of a half's columns
  static int64_t width(int64_t rank) { return round_up(rank + 1, kLine); }  // of a half: r+1, rounded up

 private:
  friend class TTAttention;
  friend class TTFeedForward;
  bool plain() const { return layers_.size() == 1 && !grouped(); }
  Tensor enter(Ctx& ctx, Tensor x);                 // T1 of all layers (T, columns), and x is kept
  void open(Ctx& ctx);                              // left_ and ones_, where they are not there yet
  TensorList leave(Ctx& ctx, Tensor t1);            // y_i
  ThinProduct leave_in_parts(Ctx& ctx, Tensor t1);  // y of a fan of one layer
  void close(Ctx& ctx);                             // drops what forward does not leave to others
  // Before turn(), of a fan of one layer: the caller makes U1.
  op::NormBackward::Onward begin_turn(Ctx& ctx, int64_t tokens);
  Tensor turn(Ctx& ctx, TensorList dy);             // U1 (T, columns), and T2 of each layer
  Mat begin_left(Ctx& ctx);                         // room for V (I, columns)
  void end_left(Ctx& ctx);                          // the sweeps of layers that are not grouped
  Tensor finish(Ctx& ctx, Tensor u1, Tensor into);  // dx, V and end_left
  ThinProduct finish_in_parts(Ctx& ctx, Tensor u1);
  void make_left(Ctx& ctx, const Tensor& u1);  // V
  // body(i, first column, columns) for the half of each layer; the number of all columns.
  template <class Body>
  int64_t each(const Body& body) const {
    int64_t first = 0;
    for (size_t i = 0; i < layers_.size(); ++i) {
      const int64_t rank = layers_[i]->matrix_.middle_rank(), columns = plain() ? rank : width(rank);
      body(i, first, columns);
      first += columns;
    }
    return first;
  }

  // body(merged, matrix, width of T1) for each layer by itself.
  template <class Body>
  void each_merged(const Body& body) const {
    for (TTLinear* layer : layers_) {
      const int64_t rank = layer->matrix_.middle_rank();
      body(layer->merged_, layer->matrix_, plain() ? rank + 1 : width(rank));
    }
  }

  const std::vector<TTLinear*> layers_;
  KeptInput input_;
  Tensor left_;    // [L_1, 0, L_2, 0, ...] (I, columns), or L (N, r)
  Tensor ones_;    // [0, 1, 0, 1, ...] (columns), which is added to every row of x left_: the ones of the biases
  Tensor v_;       // X^T U1, the same
  Tensor u1_;      // made by the caller, from begin_turn() to turn()
  TTCalls calls_;  // where they are not grouped
};

// out(f(in(x))), or out(f(gate(x)) up(x)) with two layers in the fan, under the waist (METHODS.md 12.4): where all are in the merged order,
// the wide tensors are made in parts from T1 and never exist whole, in forward and in backward. Else `apart`, which owns these layers.
class TTFeedForward final : public Layer {
 public:
  TTFeedForward(TTFan& in, Activation kind, TTLinear& out, std::unique_ptr<Layer> apart);
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;
  InParts forward_in_parts(Ctx& ctx, Tensor x) override;
  std::optional<op::NormBackward::Onward> begin_backward(Ctx& ctx, int64_t tokens) override {
    return fused_ ? std::optional(out_.alone_->begin_turn(ctx, tokens)) : std::nullopt;
  }
  InParts backward_in_parts(Ctx& ctx, InParts dy, Tensor into = {}) override;

 private:
  Tensor enter(Ctx& ctx, Tensor x);  // T1 of the second layer
  Tensor turn(Ctx& ctx, Tensor dy);  // U1 of the first
  bool is_gated() const { return in_.layers_.size() == 2; }
  bool merges(const Ctx& ctx, int64_t tokens);
  Mat input(size_t i) const { return in_.layers_[i]->merged_.input(); }
  Mat right(size_t i) const { return in_.layers_[i]->merged_.right(in_.layers_[i]->matrix_); }

  const std::unique_ptr<Layer> apart_;
  TTFan& in_;
  TTLinear& out_;
  const Activation kind_;
  bool fused_ = false;  // in the pass
};

// Attention in the space of ranks, over layers in the merged order. Letters: H heads of D / H columns, w columns of T1 (rank + 1, rounded
// up, the same for q, k and v: the largest), which must be fewer. With rotary positions only values are in this space, so w is theirs.
// Where dropout takes some probabilities, a row of P does not sum to 1: the ones in T1 of v give each bias its share.
class TTAttention final : public ThinAttention {
 public:
  TTAttention(TTFan& in, TTLinear& out, const HeadSizes& sizes);
  bool begin(const Ctx& ctx, int64_t tokens) override;
  Heads enter(Ctx& ctx, Tensor x) override;
  Tensor leave(Ctx& ctx, Tensor mean) override;
  ThinProduct leave_in_parts(Ctx& ctx, Tensor mean) override;
  op::NormBackward::Onward begin_turn(Ctx& ctx, int64_t tokens) override { return out_.alone_->begin_turn(ctx, tokens); }
  Tensor turn(Ctx& ctx, Tensor dy) override;
  Heads again(Ctx& ctx) override { return thin(ctx); }
  Heads gradients(Ctx& ctx) override;
  Tensor finish(Ctx& ctx, Heads gradients, Tensor into) override;
  ThinProduct finish_in_parts(Ctx& ctx, Heads gradients) override;
  // Of grouped layers (tt_form.cpp): the products of halves, which no token enters, are made with those of other blocks. After the fans
  // have joined, before forward; and after backward, before the sweeps, in turns from 0 on, each of which waits for the one before.
  void join(Ctx& ctx, TTCalls& calls);
  size_t turns() const { return grouped_ ? static_cast<size_t>(sizes_.heads / sizes_.key_heads) : 0; }
  void pass_back(Ctx& ctx, size_t turn, TTCalls& calls);
  void end(Ctx& ctx);

 private:
  double scale() const;
  bool is_narrower();                       // w < D / H, with the ranks as they are now
  Mat right(size_t i, int64_t head) const;  // [R; b; ...] (width, D / H) of a head of q, k or v
  int64_t columns(size_t i) const;          // width of T1 of q, k or v
  template <class Body>
  void each_key_head(size_t member, const Body& body) const;
  template <class Body>
  void together(Ctx& ctx, const Body& body);
  void make_between(Ctx& ctx, size_t member, TTCalls& calls);
  void make_absorbed(Ctx& ctx, size_t member, TTCalls& calls);
  void absorbed_back(Ctx& ctx, size_t member, TTCalls& calls);
  void between_back(Ctx& ctx, size_t member, TTCalls& calls);
  Heads thin(Ctx& ctx);
  Tensor output_t1(Ctx& ctx, Tensor mean);     // T1 of the output
  Tensor input_u1(Ctx& ctx, Heads gradients);  // U1 of the fan
  void thin_back(Ctx& ctx, Heads gradients);   // of queries and keys: columns of U1, and the gradient of between_
  void whole_back(Ctx& ctx, Heads gradients);  // the same with all of their heads: columns of U1, and T2
  Tensor whole(Ctx& ctx, size_t i) const;      // all heads of q or k (T, their D), before they are turned
  Mat of_u1(size_t i) const;                   // columns of U1 that are those of T1 of q, k or v
  bool even() const { return columns(1) == width_ && columns(2) == width_; }              // keys and values are T1 of k and v as they lie
  bool stays(const Ctx& ctx) const { return ctx.keeps() || (ctx.training && grouped_); }  // what is made of halves serves another pass, too

  TTFan& in_;
  TTLinear& out_;
  const HeadSizes sizes_;
  int64_t width_ = 0;     // w, of the pass
  bool grouped_ = false;  // in the pass
  Tensor between_;        // Rq Rk^T of all heads (width of T1 of q, H w), then its gradient
  Tensor absorbed_;       // Rv Lo of all heads (H w, width of the output's T1), then its gradient
  Tensor mean_;           // what attention makes of the values (T, H w)
  Tensor u1_;             // of the fan, from gradients() to finish()
  TTCalls calls_;         // where they are not grouped
};

// The rows of a head's matrix W = R^T L^T (V, D), looked up as token embeddings: ids (T) -> (T, D), each row of R^T (V, r) at its id, times
// L^T. Nothing of V x D exists. Cores, rank vectors and bias are the head's; each is used twice in a pass then, so the head is merged and
// swept by itself.
class TTRows final : public Layer {
 public:
  explicit TTRows(std::unique_ptr<TTLinear> head);
  std::unique_ptr<TTLinear> take_head() { return std::move(head_); }
  Tensor forward(Ctx& ctx, Tensor ids) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;

 private:
  void merge(Ctx& ctx, int64_t width);

  std::unique_ptr<TTLinear> head_;  // until the model takes it
  TTMatrix matrix_;
  TTMerged merged_;
  TTCalls calls_;
  Tensor ids_, rows_;  // (T), and rows of R^T at them (T, r)
};

// Tensor trains where `kinds` says so (METHODS.md 1.1, 1.2); entries of a bond up to `threshold` are dead in exports. `fuses`:
// feed-forward blocks without wide tensors, and attention in the space of ranks (12.4, 12.6).
std::shared_ptr<WeightForm> make_tt_form(const TTKinds& kinds, double threshold = -1, bool fuses = false);

}  // namespace comera
