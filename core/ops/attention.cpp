#include "core/ops/attention.h"

#include <algorithm>

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {

// K, V or a gradient of theirs, with the row step of `like`.
void check_of_keys(const char* op, const char* name, const Mat& x, const Tensor& q, const AttentionHeads& heads, const Mat& like) {
  check_inside(op, name, x);
  const Shape shape{q.size(0), q.size(1) / heads.heads * heads.key_heads};
  CHECK(Shape({x.rows, x.cols}) == shape && x.tensor.dtype() == q.dtype(), op << ": " << name << " is " << Shape{x.rows, x.cols}.text()
                                                                              << " " << name_of(x.tensor.dtype()) << ", expected "
                                                                              << shape.text() << " " << name_of(q.dtype()));
  CHECK(x.ld == like.ld, op << ": " << name << " has row step " << x.ld << ", k has " << like.ld);
}

// Shapes common to both directions.
template <class Op>
void check_both(const Op& op) {
  const char* name = Op::name;
  const Tensor& q = op.q;
  check_float(name, "q", q, 2);
  const int64_t tokens = q.size(0), width = q.size(1), longest = op.sequences.longest, heads = op.heads.heads;
  CHECK(heads > 0 && width % heads == 0, name << ": " << heads << " heads in " << width << " features");
  CHECK(op.heads.key_heads > 0 && heads % op.heads.key_heads == 0, name << ": " << heads << " heads on " << op.heads.key_heads);
  check_of_keys(name, "k", op.k, q, op.heads, op.k);
  check_of_keys(name, "v", op.v, q, op.heads, op.k);
  check_shape(name, "lse", op.lse, {heads, tokens}, q.dtype());
  check_sequences(name, op.sequences);
  CHECK(longest >= 0, name << ": longest sequence " << longest);
  check_shape_or_empty(name, "probs", op.probs, {op.sequences.starts.size(0), heads, longest, longest}, q.dtype());
  check_dropout(name, op.dropout, op.step);
}

// Flops of one product (queries x keys x D): the lengths live on the device, so this is an upper bound,
// sum of length^2 <= longest * min(S * longest, T), of causal attention twice what is used.
double product_flops(const Tensor& q, const Sequences& sequences) {
  const int64_t longest = sequences.longest, queries = std::min(sequences.starts.size(0) * longest, q.size(0));
  return 2.0 * static_cast<double>(q.size(1)) * static_cast<double>(longest) * static_cast<double>(queries);
}

}  // namespace

void AttentionForward::check() const {
  check_both(*this);
  check_shape(name, "out", out, q.shape(), q.dtype());
}
Work AttentionForward::work(double bytes) const { return {2 * product_flops(q, sequences), 0, bytes}; }  // Q K^T, P V

void AttentionBackward::check() const {
  check_both(*this);
  check_shape(name, "dq", dq, q.shape(), q.dtype());
  check_of_keys(name, "dk", dk, q, heads, k);
  check_of_keys(name, "dv", dv, q, heads, k);
  check_shape(name, "dout", dout, q.shape(), q.dtype());
}
Work AttentionBackward::work(double bytes) const {
  return {(probs ? 4 : 5) * product_flops(q, sequences), 0, bytes};  // dP, dV, dQ, dK, and Q K^T again
}

void RotaryTable::check() const {
  check_float(name, "table", table, 2);
  CHECK(table.size(1) % 2 == 0, name << ": " << table.size(1) << " features cannot be turned in pairs");
  check_shape(name, "positions", positions, {table.size(0)}, DType::i32);
}

void Rotate::check() const {
  check_float(name, "y", y, 2);
  check_shape(name, "x", x, y.shape(), y.dtype());
  check_float(name, "table", table, 2);
  const int64_t width = table.size(1);
  check_shape(name, "table", table, {y.size(0), width}, y.dtype());
  CHECK(width > 0 && width % 2 == 0 && y.size(1) % width == 0, name << ": heads of " << width << " in " << y.size(1) << " features");
}

}  // namespace comera::op
