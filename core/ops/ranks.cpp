#include "core/ops/ranks.h"

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {

void check_mask(const char* op, const Tensor& u, const Tensor& d, const Tensor& step) {
  check_float(op, "U", u);
  check_shape(op, "D", d, {u.size(-1)}, u.dtype());
  check_step(op, step);
}

// A model without tensorised layers has an empty table: the objective is then the loss alone.
void check_table(const char* op, const RankTable& table) {
  if (!table.ranks) return;
  check_float(op, "ranks", table.ranks, 1);
  for (const Tensor* t : {&table.bond_begin, &table.layer_bond})
    CHECK(*t && t->shape().rank() == 1 && t->size(0) >= 1,
          op << ": bond_begin is " << text(table.bond_begin) << ", layer_bond " << text(table.layer_bond));
  const int64_t bonds = table.bond_begin.size(0) - 1, layers = table.layer_bond.size(0) - 1;
  check_shape(op, "bond_begin", table.bond_begin, {bonds + 1}, DType::i32);
  check_shape(op, "layer_bond", table.layer_bond, {layers + 1}, DType::i32);
  check_shape(op, "mode_sizes", table.mode_sizes, {bonds + layers}, DType::i32);
  check_shape(op, "layer_weight", table.layer_weight, {layers}, table.ranks.dtype());
}

}  // namespace

void RankMask::check() const {
  for (const RankMaskArgs& p : all) {
    check_mask(name, p.u, p.d, step);
    check_count(name, "E", p.e, p.u.count(), p.u.dtype());
    check_same_type(name, "U", p.u, all[0].u);
  }
}

void RankMaskBackward::check() const {
  for (const RankMaskBackwardArgs& p : all) {
    check_mask(name, p.u, p.d, step);
    check_count(name, "dU", p.du, p.u.count(), p.u.dtype());
    check_count(name, "dE", p.de, p.u.count(), p.u.dtype());
    check_shape(name, "dD", p.dd, p.d.shape(), p.d.dtype());
    check_same_type(name, "U", p.u, all[0].u);
  }
}

void RankObjective::check() const {
  check_results(name, results);
  check_table(name, table);
  check_step(name, step);
}
Work RankObjective::work(double) const { return {0, 0, static_cast<double>(results.bytes() + (table.ranks ? table.ranks.bytes() : 0))}; }

void RankObjectiveBackward::check() const {
  CHECK(table.ranks, name << ": the table is empty");
  check_table(name, table);
  check_shape(name, "dranks", dranks, table.ranks.shape(), table.ranks.dtype());
  check_results(name, results);
  check_step(name, step);
}
Work RankObjectiveBackward::work(double) const { return {0, 0, static_cast<double>(2 * dranks.bytes() + table.ranks.bytes())}; }

void SumOfSquares::check() const {
  check_results(name, results);
  check_float(name, "x", x);
}
Work SumOfSquares::work(double) const { return {0, 0, static_cast<double>(results.bytes() + x.bytes())}; }

void CorePenaltyBackward::check() const {
  check_float(name, "w", w);
  check_count(name, "dw", dw, w.count(), w.dtype());
  check_step(name, step);
}

}  // namespace comera::op
