#include "core/ops/attention.h"

#include <algorithm>

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {

// K, V or a gradient of theirs: `columns` of the row step of `like`.
void check_columns(const char* op, const char* name, const Mat& x, int64_t columns, const Tensor& q, const Mat& like) {
  check_inside(op, name, x);
  const Shape shape{q.size(0), columns};
  CHECK(Shape({x.rows, x.cols}) == shape && x.tensor.dtype() == q.dtype(), op << ": " << name << " is " << Shape{x.rows, x.cols}.text()
                                                                              << " " << name_of(x.tensor.dtype()) << ", expected "
                                                                              << shape.text() << " " << name_of(q.dtype()));
  CHECK(x.ld == like.ld, op << ": the rows of " << name << " are " << x.ld << " apart, expected " << like.ld);
}

// Shapes common to both directions; `mean`: out or its gradient.
template <class Op>
void check_both(const Op& op, const char* mean_name, const Tensor& mean) {
  const char* name = Op::name;
  const Tensor& q = op.q;
  check_float(name, "q", q, 2);
  const int64_t tokens = q.size(0), width = q.size(1), longest = op.sequences.longest;
  const auto& [heads, key_heads, value_heads, causal] = op.heads;
  CHECK(heads > 0 && width % heads == 0, name << ": " << heads << " heads in " << width << " features");
  CHECK(key_heads > 0 && heads % key_heads == 0, name << ": " << heads << " heads on " << key_heads);
  CHECK(value_heads > 0 && key_heads % value_heads == 0, name << ": " << key_heads << " heads of keys on " << value_heads << " of values");
  CHECK(op.v.cols % value_heads == 0, name << ": " << value_heads << " heads in " << op.v.cols << " features of values");
  check_columns(name, "k", op.k, width / heads * key_heads, q, op.k);
  check_columns(name, "v", op.v, op.v.cols, q, op.v);
  check_shape(name, mean_name, mean, {tokens, op.v.cols / value_heads * heads}, q.dtype());
  check_shape(name, "lse", op.lse, {heads, tokens}, q.dtype());
  check_sequences(name, op.sequences);
  CHECK(longest >= 0, name << ": longest sequence " << longest);
  check_shape_or_empty(name, "probs", op.probs, {op.sequences.starts.size(0), heads, longest, longest}, q.dtype());
  check_dropout(name, op.dropout, op.step);
}

// Flops of one product (queries x keys x columns of all heads): the lengths live on the device, so this is an upper bound,
// sum of length^2 <= longest * min(S * longest, T), of causal attention twice what is used.
double product_flops(const Tensor& columns, const Sequences& sequences) {
  const int64_t longest = sequences.longest, queries = std::min(sequences.starts.size(0) * longest, columns.size(0));
  return 2.0 * static_cast<double>(columns.size(1)) * static_cast<double>(longest) * static_cast<double>(queries);
}

}  // namespace

void AttentionForward::check() const { check_both(*this, "out", out); }
Work AttentionForward::work(double bytes) const {
  return {product_flops(q, sequences) + product_flops(out, sequences), 0, bytes};  // Q K^T, P V
}

void AttentionBackward::check() const {
  check_both(*this, "dout", dout);
  check_shape(name, "dq", dq, q.shape(), q.dtype());
  check_columns(name, "dk", dk, k.cols, q, k);
  check_columns(name, "dv", dv, v.cols, q, v);
}
Work AttentionBackward::work(double bytes) const {
  return {(probs ? 2 : 3) * product_flops(q, sequences) + 2 * product_flops(dout, sequences), 0, bytes};  // dQ, dK, Q K^T again; dP, dV
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
