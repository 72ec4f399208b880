// The checked calls for tables, ranks, losses, optimizers, the int8 and the bf16 stash and linear algebra.
#include <algorithm>

#include "core/base/pieces.h"
#include "core/ops/check.h"
#include "core/ops/ops.h"
#include "core/ops/quant_math.h"

namespace comera {

using namespace ops_check;

// ---- tables -------------------------------------------------------------------------------------------------------
namespace {

void ids_of(const char* op, const Tensor& ids, int64_t tokens) { counted(op, "ids", ids, tokens, DType::i32); }

void first_token_shapes(const char* op, const Tensor& flat, const Tensor& first, const Sequences& sequences) {
  floats(op, "x", flat, 2);
  CHECK(sequences.starts && sequences.starts.shape().rank() == 1, op << ": starts is " << text(sequences.starts));
  const int64_t count = sequences.starts.size(0);
  exactly(op, "starts", sequences.starts, {count}, DType::i32);
  exactly(op, "lengths", sequences.lengths, {count}, DType::i32);
  exactly(op, "y", first, {count, flat.size(1)}, flat.dtype());
  apart(op, flat, first);
}

// Flops of one product for every token: distinct ids are known only on the device, so this is an upper bound.
double ttm_shapes(const char* op, const Tensor& y, const Tensor& p, const Tensor& q, const Tensor& ids) {
  floats(op, "P", p, 3);
  floats(op, "Q", q, 3);
  CHECK(q.dtype() == p.dtype() && q.size(1) == p.size(2), op << ": P is " << text(p) << ", Q is " << text(q));
  CHECK(y, op << ": y is empty");
  const int64_t width = p.size(1) * q.size(2);
  exactly(op, "y", y, {y.size(0), width}, p.dtype());
  ids_of(op, ids, y.size(0));
  return 2.0 * static_cast<double>(y.size(0)) * static_cast<double>(width) * static_cast<double>(p.size(2));
}

}  // namespace

void Ops::gather_rows(const Tensor& y, const Tensor& table, const Tensor& ids, bool accumulate) {
  floats("gather_rows", "table", table, 2);
  CHECK(y, "gather_rows: y is empty");
  exactly("gather_rows", "y", y, {y.size(0), table.size(1)}, table.dtype());
  ids_of("gather_rows", ids, y.size(0));
  apart("gather_rows", y, table);
  const Tensor none;  // traffic is y and as much of the table, whatever the table's size
  if (begin(*this, "gather_rows", {&y, &y, accumulate ? &y : &none, &ids})) do_gather_rows(y, table, ids, accumulate);
}

void Ops::scatter_rows(const Tensor& dtable, const Tensor& dy, const Tensor& ids) {
  floats("scatter_rows", "dtable", dtable, 2);
  CHECK(dy, "scatter_rows: dy is empty");
  exactly("scatter_rows", "dy", dy, {dy.size(0), dtable.size(1)}, dtable.dtype());
  ids_of("scatter_rows", ids, dy.size(0));
  apart("scatter_rows", dtable, dy);
  if (begin(*this, "scatter_rows", {&dtable, &dy, &ids})) do_scatter_rows(dtable, dy, ids);
}

void Ops::first_tokens(const Tensor& y, const Tensor& x, const Sequences& sequences) {
  first_token_shapes("first_tokens", x, y, sequences);
  if (begin(*this, "first_tokens", {&y, &y, &sequences.starts, &sequences.lengths})) do_first_tokens(y, x, sequences);
}

void Ops::first_tokens_backward(const Tensor& dx, const Tensor& dy, const Sequences& sequences) {
  first_token_shapes("first_tokens_backward", dx, dy, sequences);
  if (begin(*this, "first_tokens_backward", {&dx, &dy, &sequences.starts, &sequences.lengths})) do_first_tokens_backward(dx, dy, sequences);
}

void Ops::ttm_lookup(const Tensor& y, const Tensor& p, const Tensor& q, const Tensor& ids) {
  work.gemm_flops += ttm_shapes("ttm_lookup", y, p, q, ids);
  apart("ttm_lookup", y, p);
  apart("ttm_lookup", y, q);
  if (begin(*this, "ttm_lookup", {&y, &p, &q, &ids})) do_ttm_lookup(y, p, q, ids);
}

void Ops::ttm_lookup_backward(const Tensor& dp, const Tensor& dq, const Tensor& dy, const Tensor& p, const Tensor& q, const Tensor& ids) {
  const char* op = "ttm_lookup_backward";
  work.gemm_flops += 2 * ttm_shapes(op, dy, p, q, ids);  // dP and dQ
  exactly(op, "dP", dp, p.shape(), p.dtype());
  exactly(op, "dQ", dq, q.shape(), p.dtype());
  for (const Tensor* input : {&dy, &p, &q}) {
    apart(op, dp, *input);
    apart(op, dq, *input);
  }
  if (begin(*this, op, {&dp, &dq, &dy, &p, &q, &ids})) do_ttm_lookup_backward(dp, dq, dy, p, q, ids);
}

// ---- ranks --------------------------------------------------------------------------------------------------------
namespace {

void mask_shapes(const char* op, const Tensor& u, const Tensor& d, const Tensor& step) {
  floats(op, "U", u);
  exactly(op, "D", d, {u.size(-1)}, u.dtype());
  step_block(op, step);
}

// A model without tensorised layers has an empty table: the objective is then the loss alone.
void table_shapes(const char* op, const RankTable& table) {
  if (!table.ranks) return;
  floats(op, "ranks", table.ranks, 1);
  for (const Tensor* t : {&table.bond_begin, &table.layer_bond})
    CHECK(*t && t->shape().rank() == 1 && t->size(0) >= 1,
          op << ": bond_begin is " << text(table.bond_begin) << ", layer_bond " << text(table.layer_bond));
  const int64_t bonds = table.bond_begin.size(0) - 1, layers = table.layer_bond.size(0) - 1;
  exactly(op, "bond_begin", table.bond_begin, {bonds + 1}, DType::i32);
  exactly(op, "layer_bond", table.layer_bond, {layers + 1}, DType::i32);
  exactly(op, "mode_sizes", table.mode_sizes, {bonds + layers}, DType::i32);
  exactly(op, "layer_weight", table.layer_weight, {layers}, table.ranks.dtype());
}

}  // namespace

void Ops::rank_mask(const Tensor& e, const Tensor& u, const Tensor& d, const Tensor& step) {
  mask_shapes("rank_mask", u, d, step);
  counted("rank_mask", "E", e, u.count(), u.dtype());
  if (begin(*this, "rank_mask", {&e, &u, &d})) do_rank_mask(e, u, d, step);
}

void Ops::rank_mask(std::span<const RankMask> all, const Tensor& step) {
  if (all.empty()) return;
  for (const RankMask& p : all) {
    mask_shapes("rank_mask", p.u, p.d, step);
    counted("rank_mask", "E", p.e, p.u.count(), p.u.dtype());
    one_type("rank_mask", "U", p.u, all[0].u);
    traffic(*this, "rank_mask", {&p.e, &p.u, &p.d});
  }
  if (begin(*this, "rank_mask", {})) do_rank_masks(all, step);
}

namespace {
void mask_gradient_shapes(const char* op, const RankMaskGradient& p, const Tensor& step) {
  mask_shapes(op, p.u, p.d, step);
  counted(op, "dU", p.du, p.u.count(), p.u.dtype());
  counted(op, "dE", p.de, p.u.count(), p.u.dtype());
  exactly(op, "dD", p.dd, p.d.shape(), p.d.dtype());
}
}  // namespace

void Ops::rank_mask_backward(const Tensor& du, const Tensor& dd, const Tensor& de, const Tensor& u, const Tensor& d, const Tensor& step) {
  const char* op = "rank_mask_backward";
  mask_gradient_shapes(op, {du, dd, de, u, d}, step);
  if (begin(*this, op, {&du, &dd, &de, &u, &d})) do_rank_mask_backward(du, dd, de, u, d, step);
}

void Ops::rank_mask_backward(std::span<const RankMaskGradient> all, const Tensor& step) {
  const char* op = "rank_mask_backward";
  if (all.empty()) return;
  for (const RankMaskGradient& p : all) {
    mask_gradient_shapes(op, p, step);
    one_type(op, "U", p.u, all[0].u);
    traffic(*this, op, {&p.du, &p.dd, &p.de, &p.u, &p.d});
  }
  if (begin(*this, op, {})) do_rank_masks_backward(all, step);
}

void Ops::rank_objective(const Tensor& results, const RankTable& table, const Tensor& step) {
  result_block("rank_objective", results);
  table_shapes("rank_objective", table);
  step_block("rank_objective", step);
  if (begin(*this, "rank_objective", {&results, &table.ranks})) do_rank_objective(results, table, step);
}

void Ops::rank_objective_backward(const Tensor& dranks, const RankTable& table, const Tensor& results, const Tensor& step) {
  const char* op = "rank_objective_backward";
  CHECK(table.ranks, op << ": the table is empty");
  table_shapes(op, table);
  exactly(op, "dranks", dranks, table.ranks.shape(), table.ranks.dtype());
  result_block(op, results);
  step_block(op, step);
  if (begin(*this, op, {&dranks, &dranks, &table.ranks})) do_rank_objective_backward(dranks, table, results, step);
}

void Ops::sum_of_squares(const Tensor& results, const Tensor& x) {
  result_block("sum_of_squares", results);
  floats("sum_of_squares", "x", x);
  if (begin(*this, "sum_of_squares", {&results, &x})) do_sum_of_squares(results, x);
}

void Ops::core_penalty_backward(const Tensor& dw, const Tensor& w, const Tensor& step) {
  floats("core_penalty_backward", "w", w);
  counted("core_penalty_backward", "dw", dw, w.count(), w.dtype());
  step_block("core_penalty_backward", step);
  if (begin(*this, "core_penalty_backward", {&dw, &dw, &w})) do_core_penalty_backward(dw, w, step);
}

// ---- losses -------------------------------------------------------------------------------------------------------
namespace {

void loss_shapes(const char* op, const Tensor& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& logits,
                 const Tensor& labels) {
  result_block(op, results);
  floats(op, "logits", logits, 2);
  exactly(op, "dlogits", dlogits, logits.shape(), logits.dtype());
  exactly_or_empty(op, "row_loss", row_loss, {logits.size(0)}, logits.dtype());
  counted(op, "labels", labels, logits.size(0), DType::i32);
}

}  // namespace

void Ops::cross_entropy(const Tensor& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& logits, const Tensor& labels) {
  const char* op = "cross_entropy";
  loss_shapes(op, results, dlogits, row_loss, logits, labels);
  if (begin(*this, op, {&results, &dlogits, &row_loss, &logits, &labels})) do_cross_entropy(results, dlogits, row_loss, logits, labels);
}

void Ops::binary_cross_entropy(const Tensor& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& logits,
                               const Tensor& labels) {
  const char* op = "binary_cross_entropy";
  loss_shapes(op, results, dlogits, row_loss, logits, labels);
  CHECK(logits.size(1) == 1, op << ": logits is " << text(logits) << ", expected one column");
  if (begin(*this, op, {&results, &dlogits, &row_loss, &logits, &labels}))
    do_binary_cross_entropy(results, dlogits, row_loss, logits, labels);
}

void Ops::scale_by_ce_weight(const Tensor& y, const Tensor& results) {
  floats("scale_by_ce_weight", "y", y);
  result_block("scale_by_ce_weight", results);
  if (begin(*this, "scale_by_ce_weight", {&y, &y, &results})) do_scale_by_ce_weight(y, results);
}

// ---- optimizers ---------------------------------------------------------------------------------------------------
namespace {

void adam_shapes(const char* op, const Tensor& w, const Tensor& g, const Tensor& m, const Tensor& v, ParamGroup parameter_group,
                 const Tensor& step) {
  floats(op, "w", w);
  counted(op, "g", g, w.count(), w.dtype());
  counted(op, "m", m, w.count(), w.dtype());
  counted(op, "v", v, w.count(), w.dtype());
  group(op, parameter_group);
  step_block(op, step);
}

void codes_shapes(const char* op, const Tensor& x, const Tensor& codes, const Tensor& absmax) {
  floats(op, "x", x);
  counted(op, "codes", codes, x.count(), DType::u8);
  exactly(op, "absmax", absmax, {pieces_of(x.count(), kQuantBlock)}, DType::f32);
}

}  // namespace

void Ops::adam(std::span<const AdamTensors> all, AdamRule rule, const Tensor& step) {
  if (all.empty()) return;
  for (const AdamTensors& p : all) {
    adam_shapes("adam", p.w, p.g, p.m, p.v, p.group, step);
    one_type("adam", "w", p.w, all[0].w);
    traffic(*this, "adam", {&p.w, &p.w, &p.g, &p.m, &p.m, &p.v, &p.v});
  }
  if (begin(*this, "adam", {})) do_adam(all, rule, step);
}

void Ops::adam_update(const Tensor& u, const Tensor& g, const Tensor& m, const Tensor& v, AdamRule rule, ParamGroup group,
                      const Tensor& step) {
  adam_shapes("adam_update", u, g, m, v, group, step);
  if (begin(*this, "adam_update", {&u, &g, &m, &m, &v, &v})) do_adam_update(u, g, m, v, rule, group, step);
}

void Ops::weight_decay(const Tensor& w, ParamGroup group, const Tensor& step) {
  floats("weight_decay", "w", w);
  ops_check::group("weight_decay", group);
  step_block("weight_decay", step);
  if (begin(*this, "weight_decay", {&w, &w})) do_weight_decay(w, group, step);
}

void Ops::adam8bit(std::span<const Adam8bitTensors> all, AdamRule rule, const Tensor& step) {
  const char* op = "adam8bit";
  if (all.empty()) return;
  step_block(op, step);
  for (const Adam8bitTensors& p : all) {
    codes_shapes(op, p.w, p.m8, p.absmax_m);
    codes_shapes(op, p.w, p.v8, p.absmax_v);
    counted(op, "g", p.g, p.w.count(), p.w.dtype());
    ops_check::group(op, p.group);
    one_type(op, "w", p.w, all[0].w);
    traffic(*this, op, {&p.w, &p.w, &p.g, &p.m8, &p.m8, &p.v8, &p.v8, &p.absmax_m, &p.absmax_m, &p.absmax_v, &p.absmax_v});
  }
  if (begin(*this, op, {})) do_adam8bit(all, rule, step);
}

void Ops::dequantise8bit(const Tensor& x, const Tensor& codes, const Tensor& absmax, bool is_signed) {
  codes_shapes("dequantise8bit", x, codes, absmax);
  if (begin(*this, "dequantise8bit", {&x, &codes, &absmax})) do_dequantise8bit(x, codes, absmax, is_signed);
}

void Ops::quantise8bit(const Tensor& codes, const Tensor& absmax, const Tensor& x, bool is_signed) {
  codes_shapes("quantise8bit", x, codes, absmax);
  if (begin(*this, "quantise8bit", {&codes, &absmax, &x})) do_quantise8bit(codes, absmax, x, is_signed);
}

// ---- int8 stash ---------------------------------------------------------------------------------------------------
namespace {

void stash_shapes(const char* op, const Tensor& x, const Tensor& codes, const Tensor& used, int64_t groups) {
  floats(op, "x", x, 2);
  CHECK(groups > 0 && x.size(1) % groups == 0, op << ": " << x.size(1) << " features do not split into " << groups << " equal groups");
  exactly(op, "codes", codes, x.shape(), DType::u8);
  exactly(op, "used", used, {groups, 2}, x.dtype());
}

}  // namespace

void Ops::int8_keep(const Tensor& codes, const Tensor& used, const Tensor& range, const Tensor& x, int64_t groups, double decay,
                    uint32_t site, const Tensor& step) {
  stash_shapes("int8_keep", x, codes, used, groups);
  exactly("int8_keep", "range", range, {groups, 2}, x.dtype());
  CHECK(decay >= 0 && decay < 1, "int8_keep: decay " << decay);
  step_block("int8_keep", step);
  if (begin(*this, "int8_keep", {&codes, &used, &range, &range, &x, &x})) do_int8_keep(codes, used, range, x, groups, decay, site, step);
}

void Ops::int8_load(const Tensor& x, const Tensor& codes, const Tensor& used, int64_t groups) {
  stash_shapes("int8_load", x, codes, used, groups);
  if (begin(*this, "int8_load", {&x, &codes, &used})) do_int8_load(x, codes, used, groups);
}

// ---- bf16 stash ---------------------------------------------------------------------------------------------------
void Ops::bf16_keep(const Tensor& codes, const Tensor& x) {
  floats("bf16_keep", "x", x);
  exactly("bf16_keep", "codes", codes, x.shape(), DType::bf16);
  if (begin(*this, "bf16_keep", {&codes, &x})) do_bf16_keep(codes, x);
}

void Ops::bf16_load(const Tensor& x, const Tensor& codes) {
  floats("bf16_load", "x", x);
  exactly("bf16_load", "codes", codes, x.shape(), DType::bf16);
  if (begin(*this, "bf16_load", {&x, &codes})) do_bf16_load(x, codes);
}

// ---- linear algebra -----------------------------------------------------------------------------------------------
void Ops::singular_basis(const Tensor& basis, const Tensor& g, bool left) {
  const char* op = "singular_basis";
  floats(op, "g", g, 2);
  floats(op, "basis", basis, 2);
  const int64_t m = g.size(0), n = g.size(1), rank = basis.size(left ? 1 : 0);
  exactly(op, "basis", basis, left ? Shape{m, rank} : Shape{rank, n}, g.dtype());
  CHECK(rank <= std::min(m, n), op << ": " << rank << " singular vectors of " << text(g));
  apart(op, basis, g);
  if (begin(*this, op, {&basis, &g})) do_singular_basis(basis, g, left);
}

}  // namespace comera
