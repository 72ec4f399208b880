// Wrong arguments throw with a readable text, and work is counted. That every op refuses other types, other shapes and outputs that overlap
// follows from its case (cases_test.cpp); a line in kWrong is for its other rules and for texts.
#include <functional>
#include <string>

#include "tests/ops/dry.h"

namespace comera::test {
namespace {

struct Wrong {
  const char* what;
  std::function<void(Ops&)> call;
  const char* says;
};

const Wrong kWrong[] = {
    {"inner sizes differ",
     [](Ops& o) {
       o.gemm(dry({2, 3}), dry({2, 4}), false, dry({5, 3}), false);
     },
     "gemm: C 2 x 3 from op(A) 2 x 4 and op(B) 5 x 3"},
    {"transpose forgotten",
     [](Ops& o) {
       o.gemm(dry({2, 3}), dry({2, 4}), false, dry({3, 4}), false);
     },
     "op(B) 3 x 4"},
    {"types differ",
     [](Ops& o) {
       o.gemm(dry({2, 3}), dry({2, 4}), false, dry({4, 3}, DType::f64), false);
     },
     "different types"},
    {"linear x",
     [](Ops& o) {
       o.linear(dry({5, 3}), dry({5, 4}), dry({3, 2}), dry({3}));
     },
     "linear: x is (5, 4) f32, expected (5, 2)"},
    {"linear y",
     [](Ops& o) {
       o.linear(dry({5, 2}), dry({5, 4}), dry({3, 4}), dry({3}));
     },
     "linear: y is (5, 2) f32, expected (5, 3)"},
    {"linear b",
     [](Ops& o) {
       o.linear(dry({5, 3}), dry({5, 4}), dry({3, 4}), dry({4}));
     },
     "linear: b is (4) f32, expected (3)"},
    {"linear gradient of w",
     [](Ops& o) {
       o.linear_backward(dry({4, 3}), dry({3}), dry({5, 3}), dry({5, 4}));
     },
     "linear_backward: dw is (4, 3) f32, expected (3, 4)"},
    {"linear gradient of b",
     [](Ops& o) {
       o.linear_backward(dry({3, 4}), dry({4}), dry({5, 3}), dry({5, 4}));
     },
     "linear_backward: db is (4) f32, expected (3)"},
    {"linear rows",
     [](Ops& o) {
       o.linear_backward(dry({3, 4}), dry({3}), dry({5, 3}), dry({6, 4}));
     },
     "linear_backward: x is (6, 4) f32, expected (5, 4)"},
    {"integer product",
     [](Ops& o) {
       o.gemm(ints({2, 2}), ints({2, 2}), false, ints({2, 2}), false);
     },
     "expected f32 or f64"},
    {"outside the tensor",
     [](Ops& o) {
       Mat c(dry({2, 3}));
       c.offset = 1;
       o.gemm(c, dry({2, 4}), false, dry({4, 3}), false);
     },
     "lies outside its tensor"},
    {"row step under the width",
     [](Ops& o) {
       Mat y(dry({2, 3}));
       y.ld = 2;
       o.fill(y, 0);
     },
     "row step 2"},
    {"copy of another type", [](Ops& o) { o.copy(dry({4}), ints({4})); }, "copy: y is (4) f32"},
    {"copy of another size", [](Ops& o) { o.copy(dry({4}), dry({5})); }, "expected 5 elements"},
    {"copy of a matrix of other columns",
     [](Ops& o) {
       const CopyArgs one[] = {{Mat(dry({4, 5})).columns(1, 3), dry({4, 2})}};
       o.copy(one);
     },
     "copy: y is 4 x 3, x is 4 x 2"},
    {"copy of matrices of two types",
     [](Ops& o) {
       const CopyArgs all[] = {{dry({4, 2}), dry({4, 2})}, {dry({4, 2}, DType::f64), dry({4, 2}, DType::f64)}};
       o.copy(all);
     },
     "in a list of f32"},
    {"add", [](Ops& o) { o.add(dry({4}), dry({4}), dry({3})); }, "add: b is (3) f32"},
    {"scale", [](Ops& o) { o.scale(dry({4}), dry({3}), 2); }, "scale: x"},
    {"axpy", [](Ops& o) { o.axpy(dry({4}), 2, dry({4}, DType::f64)); }, "axpy: x is (4) f64"},
    {"empty operand", [](Ops& o) { o.add(Tensor(), dry({4}), dry({4})); }, "add: y is empty"},
    {"axis twice",
     [](Ops& o) {
       o.permute(dry({2, 2}), dry({2, 2}), {0, 0});
     },
     "named twice"},
    {"axis missing",
     [](Ops& o) {
       o.permute(dry({2, 2}), dry({2, 2}), {0});
     },
     "expected 1 axes"},
    {"permuted shape",
     [](Ops& o) {
       o.permute(dry({2, 3}), dry({2, 3}), {1, 0});
     },
     "expected (3, 2)"},
    {"row",
     [](Ops& o) {
       o.broadcast_rows(dry({2, 3}), dry({2}));
     },
     "broadcast_rows: row is (2)"},
    {"column sum",
     [](Ops& o) {
       o.column_sum(dry({2}), dry({2, 3}));
     },
     "column_sum: sum is (2)"},
    {"activation", [](Ops& o) { o.activation_backward(Activation::gelu, dry({2}), dry({2}), dry({3})); }, "saved is (3)"},
    {"dropout everything",
     [](Ops& o) {
       o.dropout(dry({2}), dry({2}), {1.0, 1}, step());
     },
     "dropout probability 1"},
    {"no step block",
     [](Ops& o) {
       o.dropout(dry({2}), dry({2}), {0.1, 1}, bytes({8}));
     },
     "expected StepScalars"},
    {"branch without sum",
     [](Ops& o) {
       o.norm_forward(dry({2, 3}), {}, dry({2}), dry({2}), dry({2, 3}), dry({2, 3}), dry({3}), dry({3}), 1e-5, {}, {});
     },
     "sum is empty"},
    {"gamma",
     [](Ops& o) {
       o.norm_forward(dry({2, 3}), {}, dry({2}), dry({2}), dry({2, 3}), {}, dry({2}), dry({3}), 1e-5, {}, {});
     },
     "gamma is (2)"},
    {"norm backward",
     [](Ops& o) {
       o.norm_backward(dry({2, 3}), {}, dry({3}), dry({3}), dry({2, 3}), dry({2, 3}), dry({3}), dry({2}), dry({3}), {}, {});
     },
     "mean is (3)"},
    {"heads",
     [](Ops& o) {
       o.attention_forward(dry({5, 6}), dry({4, 5}), {}, dry({5, 6}), dry({5, 6}), dry({5, 6}), sequences(2, 3), 4, {}, {});
     },
     "4 heads in 6 features"},
    {"probabilities",
     [](Ops& o) {
       o.attention_forward(dry({5, 6}), dry({2, 5}), dry({2, 2, 3, 4}), dry({5, 6}), dry({5, 6}), dry({5, 6}), sequences(2, 3), 2, {}, {});
     },
     "probs is (2, 2, 3, 4)"},
    {"sequences of two lengths",
     [](Ops& o) {
       o.attention_forward(dry({5, 6}), dry({2, 5}), {}, dry({5, 6}), dry({5, 6}), dry({5, 6}), {ints({2}), ints({3}), 3}, 2, {}, {});
     },
     "lengths is (3)"},
    {"ids of floats",
     [](Ops& o) {
       o.gather_rows(dry({4, 3}), dry({9, 3}), dry({4}), false);
     },
     "ids is (4) f32"},
    {"gather width",
     [](Ops& o) {
       o.gather_rows(dry({4, 2}), dry({9, 3}), ints({4}), false);
     },
     "y is (4, 2)"},
    {"scatter ids",
     [](Ops& o) {
       o.scatter_rows(dry({9, 3}), dry({4, 3}), ints({5}));
     },
     "ids is (5)"},
    {"first tokens",
     [](Ops& o) {
       o.first_tokens(dry({3, 4}), dry({9, 4}), sequences(2, 5));
     },
     "expected (2, 4)"},
    {"TTM inner rank",
     [](Ops& o) {
       o.ttm_lookup(dry({4, 6}), dry({5, 2, 3}), dry({7, 4, 3}), ints({4}));
     },
     "P is (5, 2, 3) f32, Q is (7, 4, 3)"},
    {"TTM width",
     [](Ops& o) {
       o.ttm_lookup(dry({4, 7}), dry({5, 2, 3}), dry({7, 3, 3}), ints({4}));
     },
     "expected (4, 6)"},
    {"TTM gradient",
     [](Ops& o) {
       o.ttm_lookup_backward(dry({5, 3, 2}), dry({7, 3, 3}), dry({4, 6}), dry({5, 2, 3}), dry({7, 3, 3}), ints({4}));
     },
     "dP is (5, 3, 2)"},
    {"rank vector",
     [](Ops& o) {
       o.rank_mask(dry({2, 3, 4}), dry({2, 3, 4}), dry({3}), step());
     },
     "D is (3) f32, expected (4)"},
    {"rank gradient",
     [](Ops& o) {
       o.rank_mask_backward(dry({2, 4}), dry({3}), dry({2, 4}), dry({2, 4}), dry({4}), step());
     },
     "dD is (3)"},
    {"mode sizes",
     [](Ops& o) {
       RankTable wrong = table();
       wrong.mode_sizes = ints({4});
       o.rank_objective(results(), wrong, step());
     },
     "mode_sizes is (4) i32, expected (5)"},
    {"results", [](Ops& o) { o.rank_objective(step(), table(), step()); }, "expected StepResults"},
    {"gradient of ranks", [](Ops& o) { o.rank_objective_backward(dry({6}), table(), results(), step()); }, "dranks is (6)"},
    {"core penalty", [](Ops& o) { o.core_penalty_backward(dry({6}), dry({7}), step()); }, "dw is (6)"},
    {"a norm with a shift and no mean",
     [](Ops& o) {
       o.norm_forward(dry({4, 3}), {}, {}, dry({4}), dry({4, 3}), {}, dry({3}), dry({3}), 1e-5, {}, step());
     },
     "mean is empty"},
    {"labels",
     [](Ops& o) {
       o.cross_entropy(results(), dry({4, 3}), {}, dry({4, 3}), ints({3}));
     },
     "labels is (3)"},
    {"one logit",
     [](Ops& o) {
       o.binary_cross_entropy(results(), dry({4, 3}), {}, dry({4, 3}), ints({4}));
     },
     "expected one column"},
    {"moments", [](Ops& o) { o.adam(dry({6}), dry({6}), dry({6}), dry({5}), {}, ParamGroup::core, step()); }, "v is (5)"},
    {"one type in a list",
     [](Ops& o) {
       const Tensor f = dry({6}), d(nullptr, {6}, DType::f64);
       const AdamTensors all[] = {{f, f, f, f}, {d, d, d, d}};
       o.adam(all, {}, step());
     },
     "w is (6) f64 in a list of f32"},
    {"a limit",
     [](Ops& o) {
       const SgdTensors one[] = {{dry({6}), dry({6})}};
       o.sgd(one, 0, step());
     },
     "limit 0"},
    {"group", [](Ops& o) { o.weight_decay(dry({6}), static_cast<ParamGroup>(3), step()); }, "parameter group 3"},
    {"blocks of 256",
     [](Ops& o) { o.adam8bit(dry({257}), dry({257}), bytes({257}), bytes({257}), dry({1}), dry({2}), {}, ParamGroup::core, step()); },
     "absmax is (1) f32, expected (2)"},
    {"rows and columns",
     [](Ops& o) {
       o.factored_moments(dry({3}), dry({4}), dry({3, 5}), 0.8, 0, step());
     },
     "column is (4) f32, expected 5 elements f32"},
    {"a moment an element", [](Ops& o) { o.factored_update(dry({6}), dry({6}), dry({5}), {}); }, "row is (5) f32, expected 6 elements f32"},
    {"no first moment", [](Ops& o) { o.adafactor_update(dry({6}), dry({6}), {}, {.beta1 = 0.9}, ParamGroup::core, step()); },
     "m is empty, expected 6 elements f32"},
    {"codes", [](Ops& o) { o.quantise8bit(bytes({5}), dry({1}), dry({6}), true); }, "codes is (5) u8"},
    {"unequal groups",
     [](Ops& o) {
       o.int8_keep(bytes({4, 6}), dry({4, 2}), dry({4, 2}), dry({4, 6}), 4, 0.9, 1, step());
     },
     "6 features do not split into 4"},
    {"pairs",
     [](Ops& o) {
       o.int8_load(dry({4, 6}), bytes({4, 6}), dry({2, 2}), 3);
     },
     "used is (2, 2) f32, expected (3, 2)"},
    {"codes of 16 bits",
     [](Ops& o) {
       o.bf16_keep(bytes({4, 6}), dry({4, 6}));
     },
     "codes is (4, 6) u8, expected (4, 6) bf16"},
    {"codes of another shape",
     [](Ops& o) {
       o.bf16_load(dry({4, 6}), Tensor(nullptr, {6, 4}, DType::bf16));
     },
     "codes is (6, 4) bf16"},
    {"too many directions",
     [](Ops& o) {
       o.singular_basis(dry({5, 6}), dry({4, 6}), false);
     },
     "5 singular vectors of (4, 6)"},
    {"wrong side",
     [](Ops& o) {
       o.singular_basis(dry({6, 2}), dry({4, 6}), true);
     },
     "basis is (6, 2) f32, expected (4, 2)"},
    {"more columns than entries in one",
     [](Ops& o) {
       o.run(op::Orthonormal{dry({4, 5})});
     },
     "5 columns of 4 entries"},
    {"no step",
     [](Ops& o) {
       o.run(op::ClippedStep{dry({4}), dry({4}), 0});
     },
     "clipped_step: size 0"},
    {"draws of no step",
     [](Ops& o) {
       o.run(op::Normal{dry({4}), 1, step(), 1, 0});
     },
     "normal: draws of 0 steps"},
    {"a history of another matrix",
     [](Ops& o) {
       o.run(op::FloraHistory{dry({4, 5}), dry({3, 2}), dry({4, 5}), 0.9, 1, step()});
     },
     "flora_history: c is (3, 2) f32"},
    {"draws of no step for a history",
     [](Ops& o) {
       o.run(op::FloraHistory{dry({4, 5}), dry({4, 2}), dry({4, 5}), 0.9, 0, step()});
     },
     "draws of 0 steps"},
    {"no such channels",
     [](Ops& o) {
       o.run(op::ApolloScales{dry({4}), dry({4, 5}), dry({4, 5}), dry({4, 5}), {}, static_cast<Channels>(3)});
     },
     "apollo_scales: channels 3"},
    {"certain rows without replacement",
     [](Ops& o) {
       o.run(op::SampleRows{ints({2}), dry({2}), dry({4, 5}), 1, 3, step(), {.distinct = true}});
     },
     "sample_rows: 1 certain rows of 2"},
    {"rows for another matrix",
     [](Ops& o) {
       o.run(op::AddRows{dry({4, 5}), 1, dry({2, 5}), ints({2}), {}, true});
     },
     "add_rows: the rows is (2, 5) f32, expected (4, 2)"},
    {"growth below 1",
     [](Ops& o) {
       o.run(op::ApolloStep{dry({4, 5}), dry({1}), dry({4, 5}), dry({4}), {}, {.growth = 0.5}, ParamGroup::core, step()});
     },
     "growth 0.5"},
};

TEST(Checks, WrongArgumentsThrowWithAReadableText) {
  CpuOps ops(1);
  ops.dry = true;
  for (const Wrong& wrong : kWrong) {
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
