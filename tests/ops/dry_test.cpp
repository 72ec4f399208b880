// Dry calls touch no memory and count the work; real calls refuse handles without memory.
#include "tests/ops/dry.h"

namespace comera::test {
namespace {

TEST(Checks, DryCallsTouchNothing) {
  CpuOps ops(1);
  ops.dry = true;
  const Dropout dropout{0.1, 3};
  const Tensor x = dry({6, 4}), row = dry({4}), col = dry({6}), p = dry({5, 2, 3}), q = dry({7, 3, 2}), ids = ints({6});
  ops.gemm(x, dry({6, 3}), false, dry({4, 3}), true);
  ops.linear(x, dry({6, 3}), dry({4, 3}), row);
  ops.linear_backward(dry({4, 3}), row, x, dry({6, 3}));
  ops.fill(x, 1);
  ops.copy(x, x);
  ops.add(x, x, x);
  ops.scale(x, x, 2);
  ops.axpy(x, 2, x);
  ops.permute(dry({4, 6}), x, {1, 0});
  ops.broadcast_rows(x, row);
  ops.column_sum(row, x);
  ops.activation_forward(Activation::gelu, x, x);
  ops.activation_backward(Activation::tanh, x, x, x);
  ops.dropout(x, x, dropout, step());
  ops.norm_forward(x, x, col, col, x, x, row, row, 1e-5, dropout, step());
  ops.norm_forward(x, {}, col, col, x, {}, row, row, 1e-5, {}, {});
  ops.norm_backward(x, x, row, row, x, x, col, col, row, dropout, step());
  ops.attention_forward(x, dry({2, 6}), dry({2, 2, 3, 3}), x, x, x, sequences(2, 3), 2, dropout, step());
  ops.attention_backward(x, x, x, x, dry({2, 6}), {}, x, x, x, sequences(2, 3), 2, dropout, step());
  ops.gather_rows(x, dry({9, 4}), ids, true);
  ops.scatter_rows(dry({9, 4}), x, ids);
  ops.first_tokens(dry({2, 4}), x, sequences(2, 3));
  ops.first_tokens_backward(x, dry({2, 4}), sequences(2, 3));
  ops.ttm_lookup(x, p, q, ids);
  ops.ttm_lookup_backward(p, q, x, p, q, ids);
  ops.rank_mask(x, x, row, step());
  ops.rank_mask_backward(x, row, x, x, row, step());
  ops.rank_objective(results(), table(), step());
  ops.rank_objective(results(), {}, step());
  ops.rank_objective_backward(dry({7}), table(), results(), step());
  ops.sum_of_squares(results(), x);
  ops.core_penalty_backward(x, x, step());
  ops.cross_entropy(results(), x, col, x, ids);
  ops.binary_cross_entropy(results(), dry({6, 1}), {}, dry({6, 1}), ids);
  ops.scale_by_ce_weight(x, results());
  ops.adam(x, x, x, x, {}, ParamGroup::core, step());
  ops.adam_update(x, x, x, x, {}, ParamGroup::rank, step());
  ops.weight_decay(x, ParamGroup::rest, step());
  ops.adam8bit(x, x, bytes({24}), bytes({24}), dry({1}), dry({1}), {}, ParamGroup::rest, step());
  ops.dequantise8bit(x, bytes({24}), dry({1}), true);
  ops.quantise8bit(bytes({24}), dry({1}), x, false);
  ops.int8_keep(bytes({6, 4}), dry({2, 2}), dry({2, 2}), x, 2, 0.9, 5, step());
  ops.int8_load(x, bytes({6, 4}), dry({2, 2}), 2);
  const Tensor halves(nullptr, x.shape(), DType::bf16);
  ops.bf16_keep(halves, x);
  ops.bf16_load(x, halves);
  ops.singular_basis(dry({6, 3}), x, true);
  EXPECT_GT(ops.work.other_bytes, 0);
}

TEST(Checks, WorkIsCounted) {
  CpuOps ops(1);
  ops.dry = true;
  ops.gemm(dry({6, 4}), dry({6, 3}), false, dry({4, 3}), true);
  EXPECT_EQ(ops.work.gemm_flops, 2 * 6 * 4 * 3);
  EXPECT_EQ(ops.work.gemm_bytes, 4 * (6 * 3 + 4 * 3 + 6 * 4));
  ops.work = {};
  ops.gemm(dry({6, 4}), dry({6, 3}), false, dry({4, 3}), true, 1, 1);
  EXPECT_EQ(ops.work.gemm_bytes, 4 * (6 * 3 + 4 * 3 + 2 * 6 * 4)) << "a product that is added to C reads it";
  ops.work = {};
  ops.linear(dry({6, 4}), dry({6, 3}), dry({3, 4}), dry({4}), false);
  EXPECT_EQ(ops.work.gemm_bytes, 4 * (6 * 3 + 3 * 4 + 6 * 4));
  ops.work = {};
  ops.linear_backward(dry({4, 3}), dry({4}), dry({6, 4}), dry({6, 3}));
  EXPECT_EQ(ops.work.gemm_bytes, 4 * (6 * 4 + 6 * 3 + 4 * 3));
  ops.work = {};
  ops.add(dry({10}), dry({10}), dry({10}));
  EXPECT_EQ(ops.work.other_bytes, 120);
  EXPECT_EQ(ops.work.gemm_flops, 0);
  ops.work = {};
  ops.ttm_lookup(dry({6, 4}), dry({5, 2, 3}), dry({7, 3, 2}), ints({6}));
  EXPECT_EQ(ops.work.gemm_flops, 2 * 6 * 2 * 3 * 2);
  ops.work = {};
  ops.attention_forward(dry({6, 4}), dry({2, 6}), {}, dry({6, 4}), dry({6, 4}), dry({6, 4}), sequences(2, 3), 2, {}, {});
  EXPECT_EQ(ops.work.gemm_flops, 2 * 2 * (3 * 6) * 4);
}

TEST(Checks, ADryTensorInARealCallThrows) {
  CpuOps ops(1);
  Array<float> y({4});
  EXPECT_THROW(ops.add(y, y, dry({4})), Error);
  EXPECT_THROW(ops.gemm(dry({2, 2}), dry({2, 2}), false, dry({2, 2}), false), Error);
}

TEST(Checks, OverlappingOutputsThrow) {
  CpuOps ops(1);
  Array<float> x({4, 4}, 1.f);
  EXPECT_THROW(ops.permute(x, x, {1, 0}), Error);
  const Tensor whole = x;
  EXPECT_THROW(ops.broadcast_rows(whole.rows(1, 2), whole.rows(2, 1).view({4})), Error);
}

}  // namespace
}  // namespace comera::test
