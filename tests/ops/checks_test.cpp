// Wrong arguments throw with a readable text, and work is counted. That every op refuses other types, other shapes and outputs that overlap
// follows from its case (cases_test.cpp); its other rules have a line in the refusals beside its cases.
#include <string>

#include "tests/ops/cases/cases.h"
#include "tests/ops/dry.h"

namespace comera::test {
namespace {

TEST(Checks, WrongArgumentsThrowWithAReadableText) {
  CpuOps ops(1);
  ops.dry = true;
  for (const Refusal& wrong : all_refusals()) {
    try {
      wrong.call(ops);
      ADD_FAILURE() << wrong.what << ": nothing was thrown";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(wrong.says), std::string::npos) << wrong.what << ": " << error.what();
    }
  }
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

TEST(Checks, OutputsThatOverlapInPartThrow) {
  CpuOps ops(1);
  const Array<float> x({4, 4}, 1.f);
  const Tensor whole = x;
  EXPECT_THROW(ops.broadcast_rows(whole.rows(1, 2), whole.rows(2, 1).view({4})), Error);
  EXPECT_THROW(ops.scale(whole.rows(1, 2), whole.rows(0, 2), 2), Error);
  ops.scale(whole.rows(1, 2), whole.rows(1, 2), 2);
  EXPECT_EQ(x[4], 2);
}

}  // namespace
}  // namespace comera::test
