// Sums over rows and columns: column sums, layer norm, losses.
#include "tests/ops/cases/cases.h"
#include "tests/ops/dry.h"

namespace comera::test {

namespace {

void add_column_sums(std::vector<Case>& cases) {
  for (const Shape& shape : {Shape{1, 1}, {0, 3}, {31, 33}, {32, 1025}, {1024, 2}, {1025, 31}, {5000, 3}, {200, 257}}) {
    add_case(cases, "column_sum_" + shape.text(), [shape](Runner& r, auto type) {
      using T = decltype(type);
      r.ops().column_sum(r.out<T>({shape[1]}, tolerance<T>(1e-4, 1e-11)), r.in(uniform<T>(shape, 1)));
      r.ops().broadcast_rows(r.out<T>(shape, 0), r.in(uniform<T>({shape[1]}, 2)));
    });
  }
}

void add_norms(std::vector<Case>& cases) {
  struct Norm {
    int64_t rows, columns;
    bool branch;
    double dropout;
  };
  for (const Norm& c : {Norm{1, 1, false, 0},
                        {1, 5, true, 0},
                        {3, 31, true, 0.2},
                        {7, 32, false, 0},
                        {33, 33, true, 0.1},
                        {40, 768, true, 0.1},
                        {130, 129, true, 0.5},
                        {5, 1023, false, 0},
                        {5, 1024, true, 0},
                        {4, 1025, true, 0.3},
                        {2, 8200, true, 0.1},  // more than the threads of a block keep
                        {0, 4, true, 0.3}})
    for (const bool rms : {false, true})
      add_case(cases, (rms ? "rms_norm_" : "norm_") + Shape{c.rows, c.columns}.text(), [c, rms](Runner& r, auto type) {
        using T = decltype(type);
        const double near = tolerance<T>(5e-5, 1e-11);
        const Shape shape{c.rows, c.columns};
        const Tensor x = r.in(uniform<T>(shape, 1, -2, 3)), branch = c.branch ? r.in(uniform<T>(shape, 2)) : Tensor();
        const Tensor gamma = r.in(uniform<T>({c.columns}, 3, 0.5, 1.5)), beta = rms ? Tensor() : r.in(uniform<T>({c.columns}, 4));
        const Tensor y = r.out<T>(shape, near), sum = c.branch ? r.out<T>(shape, near) : Tensor();
        const Tensor mean = rms ? Tensor() : r.out<T>({c.rows}, near), rstd = r.out<T>({c.rows}, near), step = r.scalars(some_scalars());
        const Dropout dropout{c.dropout, 9};
        r.ops().norm_forward(y, sum, mean, rstd, x, branch, gamma, beta, 1e-5, dropout, step);
        const Tensor dy = r.in(uniform<T>(shape, 5));
        const double scale = c.columns < 3 ? 300 : 1;  // two values: 1 / their difference
        const Tensor dsum = r.out<T>(shape, near * scale), dbranch = c.branch ? r.out<T>(shape, near * scale) : Tensor();
        r.ops().norm_backward(dsum, dbranch, r.out<T>({c.columns}, near * 4), rms ? Tensor() : r.out<T>({c.columns}, near * 4), dy,
                              c.branch ? sum : x, mean, rstd, gamma, dropout, step);
      });
  struct Thin {
    int64_t rows, columns, rank;
    double dropout;
    bool sum, before;
    bool branch = true;   // backward of a branch, too
    bool turned = false;  // r the other way round
  };
  for (const Thin& c : {Thin{1, 4, 1, 0, true, false},
                        {3, 31, 5, 0.2, false, true},
                        {70, 132, 12, 0.1, true, true},
                        {40, 768, 31, 0.1, true, false},
                        {33, 768, 64, 0, false, true},
                        {17, 1028, 70, 0.1, false, false},
                        {35, 768, 30, 0.1, true, false, false},
                        {18, 96, 7, 0.1, true, false, true, true},
                        {0, 4, 3, 0.3, true, false}})
    for (const bool rms : {false, true})
      add_case(cases, (rms ? "rms_norm_of_product_" : "norm_of_product_") + Shape{c.rows, c.columns, c.rank}.text(),
               [c, rms](Runner& r, auto type) {
                 using T = decltype(type);
                 const double near = tolerance<T>(5e-5, 1e-11);
                 const Shape shape{c.rows, c.columns};
                 const auto some_in = [&](const Shape& of, uint32_t seed) { return rms ? Tensor() : r.in(uniform<T>(of, seed)); };
                 const auto some_out = [&](const Shape& of, double near) { return rms ? Tensor() : r.out<T>(of, near); };
                 const Dropout after{c.before ? 0 : c.dropout, 4};
                 const Tensor x = r.in(uniform<T>(shape, 1, -2, 3)), gamma = r.in(uniform<T>({c.columns}, 3, 0.5, 1.5)),
                              beta = some_in({c.columns}, 4);
                 const Tensor y = r.out<T>(shape, near), sum = c.sum ? r.out<T>(shape, near) : Tensor();
                 const Tensor mean = some_out({c.rows}, near), rstd = r.out<T>({c.rows}, near), step = r.scalars(some_scalars());
                 const int64_t ld = c.rank + 3;  // columns of wider matrices
                 const auto columns = [&](const Shape& of, uint32_t seed) { return Mat(r.in(uniform<T>(of, seed))).columns(2, c.rank); };
                 op::NormForward forward{y, sum, mean, rstd, x, {}, gamma, beta, 1e-5, {c.dropout, 9}, step};
                 // r as (rank, columns), or turned
                 const auto factor = [&](uint32_t seed, int64_t first, bool turned) {
                   return turned ? columns({c.columns, ld}, seed)
                                 : Mat(r.in(uniform<T>({c.rank, c.columns + 4}, seed))).columns(first, c.columns);
                 };
                 forward.thin = {columns({c.rows, ld}, 6), factor(7, 0, c.turned), c.turned};
                 if (c.before)
                   forward.before = {some_in({c.rows}, 10), r.in(uniform<T>({c.rows}, 11, 0.5, 1.5)),
                                     r.in(uniform<T>({c.columns}, 12, 0.5, 1.5)), some_in({c.columns}, 13)};
                 forward.after = after;
                 r.ops().run(forward);
                 const Tensor dy = r.in(uniform<T>(shape, 5)), kept = r.in(uniform<T>(shape, 14));
                 op::NormBackward backward{r.out<T>(shape, near),
                                           c.branch ? r.out<T>(shape, near) : Tensor(),
                                           r.out<T>({c.columns}, near * 4),
                                           some_out({c.columns}, near * 4),
                                           dy,
                                           kept,
                                           some_in({c.rows}, 15),
                                           r.in(uniform<T>({c.rows}, 16, 0.5, 1.5)),
                                           gamma,
                                           {c.dropout, 9},
                                           step};
                 if (c.sum) backward.thin = {columns({c.rows, ld}, 8), factor(9, 1, !c.turned), !c.turned};
                 backward.after = after;
                 if (c.branch)
                   backward.onward = {Mat(r.out(uniform<T>({c.rows, ld}, 17), near * 10)).columns(1, c.rank), factor(18, 4, false)};
                 r.ops().run(backward);
               });
  for (const int64_t columns : {33, 768, 8200})  // the sum in place of the branch, y in that of x
    add_case(cases, "norm_in_place_" + Shape{5, columns}.text(), [columns](Runner& r, auto type) {
      using T = decltype(type);
      const double near = tolerance<T>(5e-5, 1e-11);
      const Tensor x = r.out(uniform<T>({5, columns}, 1), near), branch = r.out(uniform<T>({5, columns}, 2), near);
      const Tensor gamma = r.in(uniform<T>({columns}, 3)), beta = r.in(uniform<T>({columns}, 4));
      r.ops().norm_forward(x, branch, r.out<T>({5}, near), r.out<T>({5}, near), x, branch, gamma, beta, 1e-5, {0.1, 9},
                           r.scalars(some_scalars()));
    });
  for (const int64_t columns : {33, 768, 8200})  // and the gradient of the sum in that of y, the branch's in the sum
    for (const bool rms : {false, true})
      add_case(cases, (rms ? "rms_norm_backward_in_place_" : "norm_backward_in_place_") + Shape{5, columns}.text(),
               [=](Runner& r, auto type) {
                 using T = decltype(type);
                 const double near = tolerance<T>(5e-5, 1e-11);
                 const Tensor sum = r.out(uniform<T>({5, columns}, 1), near), dy = r.out(uniform<T>({5, columns}, 2), near);
                 const Tensor gamma = r.in(uniform<T>({columns}, 3)), mean = rms ? Tensor() : r.in(uniform<T>({5}, 4)),
                              rstd = r.in(uniform<T>({5}, 5, 0.5, 2));
                 r.ops().norm_backward(dy, sum, r.out<T>({columns}, near * 4), rms ? Tensor() : r.out<T>({columns}, near * 4), dy, sum,
                                       mean, rstd, gamma, {0.1, 9}, r.scalars(some_scalars()));
               });
}

void add_row_sampling(std::vector<Case>& cases) {
  struct Rows {
    int64_t rows, width, kept, certain;
  };
  for (const Rows& c : {Rows{2, 1, 1, -1}, {31, 33, 10, -1}, {33, 7, 32, 0}, {300, 5, 40, 20}, {1025, 40, 300, -1}})
    add_case(cases, "sample_rows_" + Shape{c.rows, c.width, c.kept}.text(), [c](Runner& r, auto type) {
      using T = decltype(type);
      const Array<T> values = uniform<T>({c.rows, c.width}, 1);
      const Tensor x = r.in(values), index = r.out<int>({c.kept}, 0), weight = r.out<T>({c.kept});
      r.ops().run(op::SampleRows{index, weight, x, c.certain, 9, r.scalars(some_scalars())});
      const Tensor ids = r.in(random_ids(c.kept, static_cast<int>(c.rows), 2)), factors = r.in(uniform<T>({c.kept}, 3));
      r.ops().run(op::PickRows{r.out<T>({c.kept, c.width}), x, ids, factors});
      r.ops().run(op::PickRows{r.out<T>({c.kept, c.width}, 0), x, ids, {}});
    });
  for (const int power : {0, 1, 2})
    for (const bool distinct : {false, true})
      add_case(cases, "draw_rows_" + std::to_string(power) + (distinct ? "_distinct" : ""), [power, distinct](Runner& r, auto type) {
        using T = decltype(type);
        const RowDraws draws{.power = power, .distinct = distinct, .by_part = power == 1};
        for (const int64_t kept : {1, 20, 33}) {
          const Tensor x = r.in(uniform<T>({33, 7}, 1));
          r.ops().run(op::SampleRows{r.out<int>({kept}, 0), r.out<T>({kept}), x, 0, 9, r.scalars(some_scalars()), draws});
        }
        if (distinct) return;
        const Tensor all = r.out<int>({33}, 0);
        r.ops().run(op::SampleRows{all, r.out<T>({33}, 0), r.in(uniform<T>({33, 7}, 1)), 33, 9, r.scalars(some_scalars()), draws});
      });
  for (const Shape& shape : {Shape{1, 1}, {33, 31}, {5, 1025}, {1025, 5}})
    for (const bool columns : {false, true})
      add_case(cases, "add_rows_" + shape.text() + (columns ? "_columns" : ""), [shape, columns](Runner& r, auto type) {
        using T = decltype(type);
        const int64_t kept = 7;  // more than there are rows: some come twice
        const Shape picked = columns ? Shape{shape[0], kept} : Shape{kept, shape[1]};
        const Tensor ids = r.in(random_ids(kept, static_cast<int>(shape[columns ? 1 : 0]), 2)), factors = r.in(uniform<T>({kept}, 3));
        const Tensor x = r.in(uniform<T>(shape, 1)), u = r.in(uniform<T>(picked, 4));
        for (const Tensor& weight : {factors, Tensor()}) {
          r.ops().run(op::PickRows{r.out<T>(picked), x, ids, weight, columns});
          r.ops().run(op::AddRows{r.out(uniform<T>(shape, 5)), -0.3, u, ids, weight, columns});
        }
      });
}

void add_losses(std::vector<Case>& cases) {
  for (const Shape& shape : {Shape{1, 2}, {33, 3}, {7, 1025}, {1025, 1}, {40, 33}, {3, 32}})
    for (int unlabelled : {0, 2, 1})  // none, every second row, all rows
      add_case(cases, "cross_entropy_" + shape.text() + "_" + std::to_string(unlabelled), [shape, unlabelled](Runner& r, auto type) {
        using T = decltype(type);
        Array<int> labels = random_ids(shape[0], static_cast<int>(shape[1]), 2);
        for (int64_t s = 0; s < shape[0] && unlabelled > 0; s += unlabelled) labels[s] = -1;
        auto logits = uniform<T>(shape, 1, -6, 6);
        if (shape[1] > 2) logits[0] = logits[1] = T(9);  // the first of equals counts
        const Tensor l = r.in(labels);
        const bool rows = shape[1] % 2 == 1;
        r.ops().cross_entropy(r.results({}), r.out<T>(shape), rows ? r.out<T>({shape[0]}) : Tensor(), r.in(logits), l);
        // Binary: one logit a row.
        for (int& label : labels.v) label = label < 0 ? -1 : label % 2;
        const Tensor results = r.results({}), dlogits = r.out<T>({shape[0], 1});
        r.ops().binary_cross_entropy(results, dlogits, rows ? Tensor() : r.out<T>({shape[0]}), r.in(uniform<T>({shape[0], 1}, 4, -40, 40)),
                                     r.in(labels));
        StepResults weight;
        weight.ce_weight = 0.37;
        r.ops().scale_by_ce_weight(dlogits, r.results(weight));
      });
  add_case(cases, "cross_entropy_of_no_numbers", [](Runner& r, auto type) {
    using T = decltype(type);
    auto logits = uniform<T>({4, 3}, 1);
    logits[4] = static_cast<T>(NAN);
    r.ops().cross_entropy(r.results({}), r.out<T>({4, 3}), r.out<T>({4}), r.in(logits), r.in(Array<int>({4}, {0, 1, 2, -1})));
  });
}

}  // namespace

std::vector<Case> row_cases() {
  std::vector<Case> cases;
  add_column_sums(cases);
  add_norms(cases);
  add_row_sampling(cases);
  add_losses(cases);
  return cases;
}

namespace {
op::NormForward plain_norm() { return {dry({4, 3}), {}, dry({4}), dry({4}), dry({4, 3}), {}, dry({3}), dry({3}), 1e-5, {}, {}}; }
}  // namespace

std::vector<Refusal> row_refusals() {
  return {
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
      {"a norm with a shift and no mean",
       [](Ops& o) {
         o.norm_forward(dry({4, 3}), {}, {}, dry({4}), dry({4, 3}), {}, dry({3}), dry({3}), 1e-5, {}, step());
       },
       "mean is empty"},
      {"a branch and a product",
       [](Ops& o) {
         op::NormForward call = plain_norm();
         call.branch = call.sum = dry({4, 3});
         call.thin = {dry({4, 2}), dry({2, 3})};
         o.run(call);
       },
       "norm_forward: both a branch and a product"},
      {"a product of another width",
       [](Ops& o) {
         op::NormForward call = plain_norm();
         call.thin = {dry({4, 2}), dry({3, 2})};
         o.run(call);
       },
       "a product of 4 x 2 and 3 x 2, expected (4, 3) f32"},
      {"a norm before one without a product",
       [](Ops& o) {
         op::NormForward call = plain_norm();
         call.before = {dry({4}), dry({4}), dry({3}), dry({3})};
         o.run(call);
       },
       "norm_forward: a norm before, but no product"},
      {"a product of an empty gradient",
       [](Ops& o) {
         op::NormBackward call{dry({4, 3}), {}, dry({3}), dry({3}), dry({4, 3}), dry({4, 3}), dry({4}), dry({4}), dry({3}), {}, {}};
         call.onward = {dry({4, 2}), dry({2, 3})};
         o.run(call);
       },
       "norm_backward: a product of dbranch, but no dbranch"},
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
  };
}

}  // namespace comera::test
