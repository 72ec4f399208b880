#include "tests/ops/cases/cases.h"
#include "tests/ops/dry.h"

namespace comera::test {
namespace {

constexpr Activation kKinds[] = {Activation::gelu, Activation::gelu_tanh, Activation::silu, Activation::tanh, Activation::relu};

template <class F>
void sizes(std::vector<Case>& cases, const std::string& name, const F& run) {
  for (int64_t n : kSizes) add_case(cases, name + "_" + std::to_string(n), [n, run](Runner& r, auto type) { run(r, type, n); });
}

struct Product3 {
  int64_t m, n, k;
};

void add_pointwise(std::vector<Case>& cases) {
  sizes(cases, "add", [](Runner& r, auto type, int64_t n) {
    using T = decltype(type);
    const Tensor a = r.in(uniform<T>({n}, 1)), b = r.in(uniform<T>({n}, 2)), y = r.out(uniform<T>({n}, 3)), z = r.out<T>({n});
    r.ops().add(z, a, b);
    r.ops().add(y, y, b);  // in place
  });
  sizes(cases, "scale_and_axpy", [](Runner& r, auto type, int64_t n) {
    using T = decltype(type);
    const Tensor x = r.in(uniform<T>({n}, 1)), y = r.out<T>({n}), z = r.out(uniform<T>({n}, 2));
    r.ops().scale(y, x, 0.3);
    r.ops().axpy(z, -1.7, x);
  });
  sizes(cases, "copy", [](Runner& r, auto type, int64_t n) {
    using T = decltype(type);
    r.ops().copy(r.out<T>({n}), r.in(uniform<T>({n}, 1)));
    r.ops().copy(r.out<int>({n}), r.in(random_ids(n, 100, 2)));
  });
  sizes(cases, "activations", [](Runner& r, auto type, int64_t n) {
    using T = decltype(type);
    const Tensor x = r.in(uniform<T>({n}, 1, -5, 5)), dy = r.in(uniform<T>({n}, 2));
    for (Activation kind : kKinds) {
      const Tensor y = r.out<T>({n}), dx = r.out<T>({n});
      r.ops().activation_forward(kind, y, x);
      r.ops().activation_backward(kind, dx, dy, kind == Activation::tanh ? y : x);
    }
  });
  sizes(cases, "gates", [](Runner& r, auto type, int64_t n) {
    using T = decltype(type);
    const double near = tolerance<T>(1e-6, 1e-14);
    const Tensor x = r.in(uniform<T>({n}, 1, -5, 5)), gate = r.in(uniform<T>({n}, 2)), dy = r.in(uniform<T>({n}, 3));
    for (Activation kind : kKinds) {
      if (kind == Activation::tanh) continue;
      r.ops().run(op::GatedForward{kind, r.out<T>({n}, near), x, gate});
      r.ops().run(op::GatedBackward{kind, r.out<T>({n}, near), r.out<T>({n}, near), dy, x, gate});
    }
  });
  sizes(cases, "dropout", [](Runner& r, auto type, int64_t n) {
    using T = decltype(type);
    const Tensor x = r.in(uniform<T>({n}, 1)), step = r.scalars(some_scalars());
    for (double p : {0.0, 0.1, 0.5, 0.999999999}) r.ops().dropout(r.out<T>({n}), x, {p, 5}, step);
  });
  sizes(cases, "square", [](Runner& r, auto type, int64_t n) {
    using T = decltype(type);
    const Tensor x = r.in(uniform<T>({n}, 1, 0, 3)), y = r.out(uniform<T>({n}, 2, 0, 3));
    r.ops().run(op::Square{r.out<T>({n}), x, false});
    r.ops().run(op::Square{y, y, true});  // in place
  });
  sizes(cases, "normal", [](Runner& r, auto type, int64_t n) {
    using T = decltype(type);
    r.ops().run(op::Normal{r.out<T>({n}), 5, r.scalars(some_scalars())});
    r.ops().run(op::Normal{r.out<T>({n}), 5, r.scalars(some_scalars()), 0.5, 4, 3});
  });
  add_case(cases, "fill", [](Runner& r, auto type) {
    using T = decltype(type);
    const Tensor y = r.out(uniform<T>({37, 11}, 1));
    r.ops().fill(Mat(y).columns(3, 5).top(30), 0.25);
    r.ops().fill(r.out<T>({5, 7}), -2);
    r.ops().fill(r.out<T>({0, 7}), 1);
  });
  add_case(cases, "not_a_number", [](Runner& r, auto type) {
    using T = decltype(type);
    const T nan = static_cast<T>(NAN), infinite = static_cast<T>(INFINITY);
    const Tensor x = r.in(Array<T>({5}, {nan, infinite, -infinite, T(0), T(-0.5)})), ones = r.in(Array<T>({5}, T(1)));
    for (Activation kind : kKinds) {
      r.ops().activation_forward(kind, r.out<T>({5}), x);
      r.ops().activation_backward(kind, r.out<T>({5}), ones, x);
    }
    r.ops().dropout(r.out<T>({5}), x, {0.5, 2}, r.scalars(some_scalars()));
  });
}

void add_permutations(std::vector<Case>& cases) {
  struct Permutation {
    Shape x;
    std::vector<int> axes;
  };
  const Permutation kPermutations[] = {{{1}, {0}},
                                       {{7}, {0}},
                                       {{1, 1, 1}, {2, 0, 1}},
                                       {{5, 7}, {0, 1}},
                                       {{31, 33}, {1, 0}},
                                       {{64, 32}, {1, 0}},
                                       {{1025, 3}, {1, 0}},
                                       {{3, 1025}, {1, 0}},
                                       {{2, 3, 4}, {0, 2, 1}},
                                       {{4, 33, 2, 5}, {2, 0, 1, 3}},
                                       {{3, 40, 35}, {2, 0, 1}},
                                       {{3, 40, 35}, {1, 2, 0}},
                                       {{3, 40, 35}, {2, 1, 0}},
                                       {{2, 3, 2, 5, 3, 4}, {5, 3, 1, 0, 2, 4}},
                                       {{2, 3, 2, 5, 3, 4}, {1, 0, 3, 2, 5, 4}},
                                       {{3, 0, 2}, {2, 1, 0}},
                                       {{2, 1, 5, 1, 6}, {4, 3, 0, 1, 2}}};
  int number = 0;
  for (const Permutation& permutation : kPermutations)
    add_case(cases, "permute_" + std::to_string(number++), [permutation](Runner& r, auto type) {
      using T = decltype(type);
      Shape y;
      for (int axis : permutation.axes) y.push_back(permutation.x[axis]);
      r.ops().permute(r.out<T>(y, 0), r.in(uniform<T>(permutation.x, 1)), permutation.axes);
    });
}

void add_products(std::vector<Case>& cases) {
  for (const Product3& p : {Product3{1, 1, 1}, {5, 7, 3}, {33, 2, 65}, {64, 31, 1}, {4, 5, 0}, {0, 3, 2}, {3, 0, 2}})
    add_case(cases, "gemm_" + Shape{p.m, p.n, p.k}.text(), [p](Runner& r, auto type) {
      using T = decltype(type);
      for (bool ta : {false, true})
        for (bool tb : {false, true}) {
          const Tensor a = r.in(uniform<T>(ta ? Shape{p.k, p.m} : Shape{p.m, p.k}, 1)),
                       b = r.in(uniform<T>(tb ? Shape{p.n, p.k} : Shape{p.k, p.n}, 2));
          const Mat ma(a, ta ? p.k : p.m, ta ? p.m : p.k), mb(b, tb ? p.n : p.k, tb ? p.k : p.n);
          r.ops().gemm(Mat(r.out(Array<T>({p.m, p.n}, static_cast<T>(NAN))), p.m, p.n), ma, ta, mb, tb, 0.7);
          r.ops().gemm(Mat(r.out(uniform<T>({p.m, p.n}, 3)), p.m, p.n), ma, ta, mb, tb, 1, 1);
          // Into and from some columns of wider matrices.
          const Tensor wide = r.out(uniform<T>({p.m, p.n + 5}, 4));
          r.ops().gemm(Mat(wide, p.m, p.n + 5).columns(2, p.n), ma, ta, mb, tb, -1, 0.5);
        }
      const Tensor wide = r.in(uniform<T>({p.m, p.k + 4}, 5)), b = r.in(uniform<T>({p.k, p.n}, 6));
      r.ops().gemm(Mat(r.out<T>({p.m, p.n}), p.m, p.n), Mat(wide, p.m, p.k + 4).columns(1, p.k), false, Mat(b, p.k, p.n), false);
    });
  // tokens, out, in
  for (const Product3& p : {Product3{1, 1, 1}, {7, 3, 5}, {1, 33, 65}, {64, 1, 31}, {300, 40, 9}, {0, 3, 2}, {4, 0, 2}, {4, 3, 0}})
    add_case(cases, "linear_" + Shape{p.m, p.n, p.k}.text(), [p](Runner& r, auto type) {
      using T = decltype(type);
      const Tensor x = r.in(uniform<T>({p.m, p.k}, 1)), w = r.in(uniform<T>({p.n, p.k}, 2)), b = r.in(uniform<T>({p.n}, 3));
      r.ops().linear(r.out(Array<T>({p.m, p.n}, static_cast<T>(NAN))), x, w, b);
      r.ops().linear(r.out(Array<T>({p.m, p.n}, static_cast<T>(NAN))), x, r.in(uniform<T>({p.k, p.n}, 5)), b, false);
      const double near = tolerance<T>(5e-5, 1e-12);
      r.ops().linear_backward(r.out(Array<T>({p.n, p.k}, static_cast<T>(NAN)), near), r.out(Array<T>({p.n}, static_cast<T>(NAN)), near),
                              r.in(uniform<T>({p.m, p.n}, 4)), x);
    });
}

struct Waist {
  int64_t tokens, a, wide, b;
};

void add_waists(std::vector<Case>& cases) {
  for (const Waist& w :
       {Waist{3, 4, 9, 5}, {1, 2, 1, 1}, {70, 31, 100, 30}, {2100, 2, 3, 2}, {40, 70, 33, 68}, {0, 3, 4, 2}, {60, 9, 260, 5}})
    add_case(cases, "waist_" + Shape{w.tokens, w.a, w.wide, w.b}.text(), [w](Runner& r, auto type) {
      using T = decltype(type);
      const double near = tolerance<T>(1e-4, 1e-12);
      const auto whole = [&](Shape shape, uint32_t seed) { return Mat(r.in(uniform<T>(shape, seed)), shape[0], shape[1]); };
      const Mat t = whole({w.tokens, w.a}, 1), right = whole({w.a, w.wide}, 2), left = whole({w.wide, w.b}, 3),
                dy = whole({w.tokens, w.b}, 4);
      const Tensor bias = r.in(uniform<T>({w.b}, 5));
      const auto empty = [&](Shape shape) { return Mat(r.out(Array<T>(shape, static_cast<T>(NAN)), near), shape[0], shape[1]); };
      for (const Activation kind : kKinds) {
        if (kind != Activation::gelu && w.tokens != 3) continue;
        r.ops().run(op::WaistActivation{kind, empty({w.tokens, w.b}), t, right, left, kind == Activation::silu ? Tensor() : bias});
        r.ops().run(
            op::WaistActivationBackward{kind, empty({w.tokens, w.a}), empty({w.a, w.wide}), empty({w.wide, w.b}), dy, t, right, left});
      }
      // Columns of wider matrices, and fewer columns of dt.
      const auto columns = [&](Shape shape, uint32_t seed) {
        return Mat(r.out(uniform<T>({shape[0], shape[1] + 3}, seed), near), shape[0], shape[1] + 3).columns(2, shape[1]);
      };
      const Mat t_columns = columns({w.tokens, w.a}, 6), right_columns = columns({w.a, w.wide}, 7),
                left_columns = columns({w.wide, w.b}, 8), dy_columns = columns({w.tokens, w.b}, 9);
      r.ops().run(op::WaistActivation{Activation::gelu, columns({w.tokens, w.b}, 10), t_columns, right_columns, left_columns, {}});
      r.ops().run(op::WaistActivationBackward{Activation::gelu, columns({w.tokens, w.a - 1}, 11), columns({w.a, w.wide}, 12),
                                              columns({w.wide, w.b}, 13), dy_columns, t_columns, right_columns, left_columns});
      // With a gate, whose sides are others.
      const int64_t of_gate = w.a + 3;
      const Mat gate_t = whole({w.tokens, of_gate}, 14), gate_right = columns({of_gate, w.wide}, 15);
      for (const Activation kind : {Activation::silu, Activation::gelu})
        for (const bool biased : {false, true})
          r.ops().run(op::WaistActivation{kind, empty({w.tokens, w.b}), t, right, left, biased ? bias : Tensor(),
                                          op::WaistActivation::Gate{gate_t, gate_right}});
      r.ops().run(op::WaistActivationBackward{
          Activation::silu, columns({w.tokens, w.a - 1}, 16), columns({w.a, w.wide}, 17), empty({w.wide, w.b}), dy, t_columns,
          right_columns, left_columns,
          op::WaistActivationBackward::Gate{columns({w.tokens, of_gate - 1}, 18), empty({of_gate, w.wide}), gate_t, gate_right}});
    });
}

void add_lists(std::vector<Case>& cases) {
  add_case(cases, "lists", [](Runner& r, auto type) {
    using T = decltype(type);
    std::vector<GemmArgs> products;
    uint32_t seed = 100;
    for (const Product3& p : {Product3{1, 1, 1}, {33, 2, 65}, {64, 31, 1}, {4, 5, 0}, {0, 3, 2}, {40, 70, 100}})
      for (bool ta : {false, true})
        for (bool tb : {false, true}) {
          const Tensor a = r.in(uniform<T>(ta ? Shape{p.k, p.m} : Shape{p.m, p.k}, ++seed)),
                       b = r.in(uniform<T>(tb ? Shape{p.n, p.k + 3} : Shape{p.k, p.n + 3}, ++seed));
          const Mat ma(a, ta ? p.k : p.m, ta ? p.m : p.k), mb(b, tb ? p.n : p.k, (tb ? p.k : p.n) + 3);
          products.push_back(
              {Mat(r.out(Array<T>({p.m, p.n}, static_cast<T>(NAN)), 5e-5), p.m, p.n), ma, ta, mb.columns(2, tb ? p.k : p.n), tb, 0.7, 0});
          products.push_back({Mat(r.out(uniform<T>({p.m, p.n + 5}, ++seed), 5e-5), p.m, p.n + 5).columns(2, p.n), ma, ta,
                              mb.columns(2, tb ? p.k : p.n), tb, -1, 0.5});
        }
    // Rows at multiples of 16 bytes that end elsewhere; what lies behind them is no number.
    const auto columns_of = [&](int64_t rows, int64_t columns) {
      Array<T> values = uniform<T>({rows, columns + 2}, ++seed);
      for (int64_t i = 0; i < rows; ++i)
        values[i * (columns + 2) + columns] = values[i * (columns + 2) + columns + 1] = static_cast<T>(NAN);
      return Mat(r.in(values)).columns(0, columns);
    };
    for (bool ta : {false, true})
      for (bool tb : {false, true})
        products.push_back({Mat(r.out(uniform<T>({30, 64}, ++seed), 5e-5)).columns(0, 62), ta ? columns_of(130, 30) : columns_of(30, 130),
                            ta, tb ? columns_of(62, 130) : columns_of(130, 62), tb, 0.3, 1});
    r.ops().gemm(products);
    std::vector<CopyArgs> copies;
    for (int64_t n : kSizes) copies.push_back({r.out<T>({n}, 0), r.in(uniform<T>({n}, ++seed))});
    copies.push_back({r.out<T>({0}, 0), r.in(Array<T>({0}))});
    const Tensor wide = r.out<T>({100, 41}, 0), narrow = r.in(uniform<T>({100, 40}, ++seed));  // columns of wide matrices
    copies.push_back({Mat(wide).columns(0, 9), Mat(narrow).columns(31, 9)});
    copies.push_back({Mat(wide).columns(40, 1), Mat(narrow).columns(3, 1)});
    copies.push_back({r.out<T>({100, 13}, 0), Mat(narrow).columns(5, 13)});
    copies.push_back({Mat(r.out<T>({50, 41}, 0)).top(40).columns(1, 40), Mat(narrow).top(40)});
    r.ops().copy(copies);
    for (double pruning : {0.0, 1.0}) {
      StepScalars scalars = some_scalars();
      scalars.pruning = pruning;
      const Tensor step = r.scalars(scalars);
      std::vector<RankMaskArgs> masks;
      std::vector<RankMaskBackwardArgs> gradients;
      for (const Shape& shape : {Shape{1, 1, 1}, {31, 33}, {5, 7, 32}, {3, 200}, {0, 4}, {600, 3}}) {
        const Tensor u = r.in(uniform<T>(shape, ++seed)), d = r.in(uniform<T>({shape[-1]}, ++seed, -0.3, 1));
        masks.push_back({r.out<T>(shape), u, d});
        const Tensor in_place = r.out(uniform<T>(shape, ++seed));  // dU may be dE
        gradients.push_back({in_place, r.out<T>({shape[-1]}, tolerance<T>(5e-5, 1e-12)), in_place, u, d});
        gradients.push_back({r.out<T>(shape), r.out<T>({shape[-1]}, tolerance<T>(5e-5, 1e-12)), r.in(uniform<T>(shape, ++seed)), u, d});
      }
      r.ops().rank_mask(masks, step);
      r.ops().rank_mask_backward(gradients, step);
    }
  });
}

}  // namespace

std::vector<Case> pointwise_cases() {
  std::vector<Case> cases;
  add_pointwise(cases);
  add_permutations(cases);
  add_products(cases);
  add_waists(cases);
  add_lists(cases);
  return cases;
}

std::vector<Refusal> pointwise_refusals() {
  return {
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
      {"activation", [](Ops& o) { o.activation_backward(Activation::gelu, dry({2}), dry({2}), dry({3})); }, "saved is (3)"},
      {"gate",
       [](Ops& o) {
         o.run(op::GatedForward{Activation::silu, dry({2}), dry({2}), dry({3})});
       },
       "gate is (3)"},
      {"gradient of a gate",
       [](Ops& o) {
         o.run(op::GatedBackward{Activation::silu, dry({2}), dry({2}), dry({2}), dry({2}), dry({3})});
       },
       "gate is (3)"},
      {"gate of an output",
       [](Ops& o) {
         o.run(op::GatedForward{Activation::tanh, dry({2}), dry({2}), dry({2})});
       },
       "reads its output"},
      {"waist of other sides",
       [](Ops& o) {
         o.run(op::WaistActivation{Activation::gelu, dry({5, 2}), dry({5, 3}), dry({3, 8}), dry({7, 2}), {}});
       },
       "waist_activation: y 5 x 2 from t 5 x 3, r 3 x 8 and l 7 x 2"},
      {"bias on columns",
       [](Ops& o) {
         o.run(op::WaistActivation{Activation::gelu, Mat(dry({5, 3})).columns(0, 2), dry({5, 3}), dry({3, 8}), dry({8, 2}), dry({2})});
       },
       "y is a part of its tensor"},
      {"gradient of more columns than t",
       [](Ops& o) {
         o.run(op::WaistActivationBackward{Activation::gelu, dry({5, 4}), dry({3, 8}), dry({8, 2}), dry({5, 2}), dry({5, 3}), dry({3, 8}),
                                           dry({8, 2})});
       },
       "dt has 4 columns"},
      {"waist of a gate of other sides",
       [](Ops& o) {
         o.run(op::WaistActivation{Activation::silu,
                                   dry({5, 2}),
                                   dry({5, 3}),
                                   dry({3, 8}),
                                   dry({8, 2}),
                                   {},
                                   op::WaistActivation::Gate{dry({5, 4}), dry({4, 7})}});
       },
       "waist_activation: y 5 x 2 from t 5 x 4, r 4 x 7 and l 8 x 2"},
      {"waist of a gate with an output",
       [](Ops& o) {
         o.run(op::WaistActivationBackward{Activation::tanh, dry({5, 3}), dry({3, 8}), dry({8, 2}), dry({5, 2}), dry({5, 3}), dry({3, 8}),
                                           dry({8, 2}),
                                           op::WaistActivationBackward::Gate{dry({5, 4}), dry({4, 8}), dry({5, 4}), dry({4, 8})}});
       },
       "reads its output"},
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
      {"draws of no step",
       [](Ops& o) {
         o.run(op::Normal{dry({4}), 1, step(), 1, 0});
       },
       "normal: draws of 0 steps"},
  };
}

}  // namespace comera::test
