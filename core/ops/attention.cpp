#include "core/ops/attention.h"

#include <algorithm>

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {

// Shapes common to both directions.
template <class Op>
void check_both(const Op& op) {
  const char* name = Op::name;
  const Tensor& q = op.q;
  check_float(name, "q", q, 2);
  const int64_t tokens = q.size(0), width = q.size(1), longest = op.sequences.longest;
  CHECK(op.heads > 0 && width % op.heads == 0, name << ": " << op.heads << " heads in " << width << " features");
  check_shape(name, "k", op.k, q.shape(), q.dtype());
  check_shape(name, "v", op.v, q.shape(), q.dtype());
  check_shape(name, "lse", op.lse, {op.heads, tokens}, q.dtype());
  check_sequences(name, op.sequences);
  CHECK(longest >= 0, name << ": longest sequence " << longest);
  check_shape_or_empty(name, "probs", op.probs, {op.sequences.starts.size(0), op.heads, longest, longest}, q.dtype());
  check_dropout(name, op.dropout, op.step);
}

// Flops of one product (queries x keys x D): the lengths live on the device, so this is an upper bound,
// sum of length^2 <= longest * min(S * longest, T).
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
  check_shape(name, "dk", dk, q.shape(), q.dtype());
  check_shape(name, "dv", dv, q.shape(), q.dtype());
  check_shape(name, "dout", dout, q.shape(), q.dtype());
}
Work AttentionBackward::work(double bytes) const {
  return {(probs ? 4 : 5) * product_flops(q, sequences), 0, bytes};  // dP, dV, dQ, dK, and Q K^T again
}

}  // namespace comera::op
