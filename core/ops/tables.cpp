#include "core/ops/tables.h"

#include <algorithm>
#include <limits>

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {

void check_ids(const char* op, const Tensor& ids, int64_t tokens) { check_count(op, "ids", ids, tokens, DType::i32); }

void check_first_tokens(const char* op, const Tensor& flat, const Tensor& first, const Sequences& sequences) {
  check_float(op, "x", flat, 2);
  check_sequences(op, sequences);
  check_shape(op, "y", first, {sequences.starts.size(0), flat.size(1)}, flat.dtype());
}

void check_ttm(const char* op, const Tensor& y, const Tensor& p, const Tensor& q, const Tensor& ids) {
  check_float(op, "P", p, 3);
  check_float(op, "Q", q, 3);
  CHECK(q.dtype() == p.dtype() && q.size(1) == p.size(2), op << ": P is " << text(p) << ", Q is " << text(q));
  CHECK(y, op << ": y is empty");
  check_shape(op, "y", y, {y.size(0), p.size(1) * q.size(2)}, p.dtype());
  check_ids(op, ids, y.size(0));
}

// Of one product for every token: distinct ids are known only on the device, so this is an upper bound.
double ttm_flops(const Tensor& y, const Tensor& p) { return 2.0 * static_cast<double>(y.count()) * static_cast<double>(p.size(2)); }

}  // namespace

void GatherRows::check() const {
  check_float(name, "table", table, 2);
  CHECK(y, "gather_rows: y is empty");
  check_shape(name, "y", y, {y.size(0), table.size(1)}, table.dtype());
  check_ids(name, ids, y.size(0));
  if (!more) return;
  check_shape(name, "the other table", more->table, {more->table ? more->table.size(0) : 0, table.size(1)}, table.dtype());
  check_ids(name, more->ids, y.size(0));
}
Work GatherRows::work(double) const {  // y and as much of each table, whatever its size
  return {0, 0, static_cast<double>(((accumulate ? 3 : 2) + (more ? 1 : 0)) * y.bytes() + (more ? 2 : 1) * ids.bytes())};
}

void ScatterRows::check() const {
  check_float(name, "dtable", dtable, 2);
  CHECK(dy, "scatter_rows: dy is empty");
  check_shape(name, "dy", dy, {dy.size(0), dtable.size(1)}, dtable.dtype());
  check_ids(name, ids, dy.size(0));
}

void ScatterDistinctRows::check() const {
  check_float(name, "dy", dy, 2);
  check_shape(name, "drows", drows, {std::min(table_rows, dy.size(0)), dy.size(1)}, dy.dtype());
  check_count(name, "rows", rows, drows.size(0), DType::i32);
  check_ids(name, ids, dy.size(0));
}

namespace {

void check_some_rows(const char* op, const Tensor& y, const Tensor& table, const Tensor& rows) {
  check_float(op, "table", table, 2);
  CHECK(y, op << ": y is empty");
  check_shape(op, "y", y, {y.size(0), table.size(1)}, table.dtype());
  check_count(op, "rows", rows, y.size(0), DType::i32);
}

Work work_of_rows(const Tensor& y, const Tensor& rows) { return {0, 0, static_cast<double>(2 * y.bytes() + rows.bytes())}; }

}  // namespace

void TakeRows::check() const { check_some_rows(name, y, table, rows); }
Work TakeRows::work(double) const { return work_of_rows(y, rows); }

void PutRows::check() const { check_some_rows(name, y, table, rows); }
Work PutRows::work(double) const { return work_of_rows(y, rows); }

void FirstTokens::check() const { check_first_tokens(name, x, y, sequences); }
Work FirstTokens::work(double) const {
  return {0, 0, static_cast<double>(2 * y.bytes() + sequences.starts.bytes() + sequences.lengths.bytes())};
}

void FirstTokensBackward::check() const { check_first_tokens(name, dx, dy, sequences); }

void EqualSequences::check() const {
  check_sequences(name, {starts, lengths});
  CHECK(length > 0 && starts.count() * length <= std::numeric_limits<int32_t>::max(),
        name << ": " << starts.count() << " sequences of " << length << " tokens");
}

void TtmLookup::check() const { check_ttm(name, y, p, q, ids); }
Work TtmLookup::work(double bytes) const { return {ttm_flops(y, p), 0, bytes}; }

void TtmLookupBackward::check() const {
  check_ttm(name, dy, p, q, ids);
  check_shape(name, "dP", dp, p.shape(), p.dtype());
  check_shape(name, "dQ", dq, q.shape(), p.dtype());
}
Work TtmLookupBackward::work(double bytes) const { return {2 * ttm_flops(dy, p), 0, bytes}; }  // dP and dQ

}  // namespace comera::op
