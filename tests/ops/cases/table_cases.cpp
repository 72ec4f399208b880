// Lookups and attention.
#include "tests/ops/cases/cases.h"
#include "tests/ops/dry.h"

namespace comera::test {

namespace {

void add_tables(std::vector<Case>& cases) {
  struct Table {
    int64_t rows, width, tokens;
  };
  for (const Table& c : {Table{1, 1, 1}, {2, 33, 1025}, {40, 31, 500}, {512, 32, 64}, {1200, 3, 1000}, {70, 257, 33}, {7, 5, 0}})
    add_case(cases, "table_" + Shape{c.rows, c.width, c.tokens}.text(), [c](Runner& r, auto type) {
      using T = decltype(type);
      Array<int> numbers = random_ids(c.tokens, static_cast<int>(c.rows), 1);
      for (int64_t t = 0; t < c.tokens; t += 3) numbers[t] = static_cast<int>(c.rows / 2);  // one word takes a third of the batch
      const Tensor ids = r.in(numbers), table = r.in(uniform<T>({c.rows, c.width}, 2));
      r.ops().gather_rows(r.out<T>({c.tokens, c.width}, 0), table, ids, false);
      r.ops().gather_rows(r.out(uniform<T>({c.tokens, c.width}, 3)), table, ids, true);
      for (const bool accumulate : {false, true}) {
        op::GatherRows both{r.out(uniform<T>({c.tokens, c.width}, 4)), table, ids, accumulate};
        both.more = {r.in(uniform<T>({3, c.width}, 5)), r.in(random_ids(c.tokens, 3, 6))};
        r.ops().run(both);
      }
      r.ops().scatter_rows(r.out<T>({c.rows, c.width}, tolerance<T>(1e-4, 1e-12)), r.in(uniform<T>({c.tokens, c.width}, 4)), ids);
      const int64_t places = std::min(c.tokens, c.rows);
      r.ops().run(op::ScatterDistinctRows{r.out<T>({places, c.width}, tolerance<T>(1e-4, 1e-12)), r.out<int>({places}, 0),
                                          r.in(uniform<T>({c.tokens, c.width}, 4)), ids, c.rows});
    });
  for (const int64_t sequences : {0, 1, 7, 300})
    add_case(cases, "equal_sequences_" + std::to_string(sequences), [sequences](Runner& r, auto) {
      r.ops().run(op::EqualSequences{r.out<int>({sequences}, 0), r.out<int>({sequences}, 0), 50});
    });
  for (int64_t width : {1, 33, 300}) {
    add_case(cases, "some_rows_" + std::to_string(width), [width](Runner& r, auto type) {
      using T = decltype(type);
      const Tensor rows = r.in(Array<int>({6}, {-1, 3, 0, -1, 8, 5}));
      r.ops().run(op::TakeRows{r.out<T>({6, width}, 0), r.in(uniform<T>({9, width}, 1)), rows});
      r.ops().run(op::PutRows{r.out(uniform<T>({9, width}, 1)), r.in(uniform<T>({6, width}, 2)), rows});
    });
    add_case(cases, "first_tokens_" + std::to_string(width), [width](Runner& r, auto type) {
      using T = decltype(type);
      const Sequences sequences{r.in(Array<int>({4}, {0, 99, 5, 8})), r.in(Array<int>({4}, {5, 0, 3, 1})), 5};
      r.ops().first_tokens(r.out<T>({4, width}, 0), r.in(uniform<T>({9, width}, 1)), sequences);
      r.ops().first_tokens_backward(r.out<T>({9, width}, 0), r.in(uniform<T>({4, width}, 2)), sequences);
    });
  }
}

void add_interaction(std::vector<Case>& cases) {
  struct Vectors {
    int64_t examples, vectors, width;
  };
  for (const Vectors& c : {Vectors{1, 1, 1}, {3, 2, 5}, {7, 5, 16}, {40, 27, 24}, {0, 3, 2}})
    for (const bool itself : {false, true})
      add_case(cases, "dot_interaction_" + Shape{c.examples, c.vectors, c.width}.text() + (itself ? "_itself" : ""),
               [=](Runner& r, auto type) {
                 using T = decltype(type);
                 const Tensor z = r.in(uniform<T>({c.examples, c.vectors, c.width}, 1));
                 const Shape out{c.examples, c.width + DotPairs{c.vectors, itself}.count()};
                 const double near = tolerance<T>(1e-5, 1e-12);
                 r.ops().run(op::DotInteraction{r.out<T>(out, near), z, itself});
                 r.ops().run(op::DotInteractionBackward{r.out<T>(z.shape(), near), r.in(uniform<T>(out, 2)), z, itself});
               });
}

void add_ttm_tables(std::vector<Case>& cases) {
  struct Ttm {
    int64_t m1, n1, r, m2, n2, tokens;
  };
  for (const Ttm& c : {Ttm{5, 2, 3, 7, 2, 20},
                       {6, 16, 32, 10, 20, 200},
                       {4, 5, 7, 3, 19, 64},
                       {1, 1, 1, 1, 1, 3},
                       {3, 4, 5, 2, 21, 0},
                       {3, 36, 68, 4, 70, 60},
                       {1100, 2, 2, 3, 3, 900}})
    add_case(cases, "ttm_" + Shape{c.m1, c.n1, c.r, c.m2, c.n2, c.tokens}.text(), [c](Runner& r, auto type) {
      using T = decltype(type);
      const double near = tolerance<T>(1e-4, 1e-11);
      const Tensor p = r.in(uniform<T>({c.m1, c.n1, c.r}, 1)), q = r.in(uniform<T>({c.m2, c.r, c.n2}, 2));
      const Tensor ids = r.in(random_ids(c.tokens, static_cast<int>(c.m1 * c.m2), 3)), dy = r.in(uniform<T>({c.tokens, c.n1 * c.n2}, 4));
      r.ops().ttm_lookup(r.out<T>({c.tokens, c.n1 * c.n2}, near), p, q, ids);
      r.ops().ttm_lookup_backward(r.out<T>({c.m1, c.n1, c.r}, near), r.out<T>({c.m2, c.r, c.n2}, near), dy, p, q, ids);
    });
}

void add_attention(std::vector<Case>& cases) {
  struct Attention {
    std::vector<int> starts, lengths;
    int64_t tokens, longest, heads, head_width;
    double dropout;
    bool keep;
    int64_t key_heads = 0;
    bool causal = false;
    int64_t value_heads = 0, value_width = 0;  // 0: as of keys
  };
  const Attention kAttention[] = {
      {{0}, {1}, 1, 1, 1, 1, 0, false},
      {{0}, {5}, 5, 5, 2, 3, 0, true},
      {{0, 4, 9}, {4, 5, 1}, 10, 5, 2, 4, 0.2, true},
      {{0, 8, 16}, {3, 0, 8}, 24, 8, 3, 5, 0.1, false},  // padded, and a sequence without tokens
      {{2, 20}, {17, 33}, 60, 40, 2, 16, 0.3, true},     // gaps before, between and after
      {{40, 0}, {20, 37}, 60, 37, 1, 64, 0, false},      // out of order
      {{0, 31, 63, 96}, {31, 32, 33, 1}, 97, 33, 2, 24, 0.1, false},
      {{0}, {3}, 4, 3, 1, 400, 0.1, true},        // tiles of a few rows
      {{1}, {170}, 172, 170, 1, 64, 0.1, false},  // scores in chunks, in double
      {{0, 5, 6}, {5, 1, 0}, 8, 6, 6, 3, 0, true, 2},
      {{0, 40}, {37, 20}, 61, 37, 4, 8, 0.1, false, 1},
      {{0, 5, 6}, {5, 1, 0}, 8, 6, 2, 3, 0, true, 0, true},
      {{0, 45}, {45, 33}, 79, 47, 4, 24, 0.2, true, 2, true},
      {{0, 45}, {45, 33}, 79, 47, 3, 16, 0.2, false, 1, true},
      {{1}, {170}, 172, 170, 2, 64, 0.1, false, 1, true},
      // Values of other heads and widths than the keys.
      {{0, 5, 6}, {5, 1, 0}, 8, 6, 4, 6, 0.1, true, 2, false, 1, 4},
      {{0, 40}, {37, 20}, 61, 37, 4, 24, 0.1, false, 4, false, 1, 12},
      {{2, 45}, {40, 33}, 79, 47, 4, 8, 0.2, true, 4, true, 2, 36},
      {{1}, {170}, 172, 170, 4, 64, 0.1, false, 2, true, 1, 28},
  };
  int number = 0;
  for (const Attention& c : kAttention)
    add_case(cases, "attention_" + std::to_string(number++), [c](Runner& r, auto type) {
      using T = decltype(type);
      const double near = tolerance<T>(2e-5, 1e-12);
      const int64_t count = static_cast<int64_t>(c.starts.size());
      const AttentionHeads heads(c.heads, c.key_heads, c.causal, c.value_heads);
      const int64_t value_width = c.value_width > 0 ? c.value_width : c.head_width;
      const Shape shape{c.tokens, c.heads * c.head_width}, keys{c.tokens, heads.key_heads * c.head_width},
          values{c.tokens, heads.value_heads * value_width}, means{c.tokens, c.heads * value_width};
      const Tensor q = r.in(uniform<T>(shape, 1, -2, 2)), k = r.in(uniform<T>(keys, 2, -2, 2)), v = r.in(uniform<T>(values, 3));
      const Tensor dout = r.in(uniform<T>(means, 4)), step = r.scalars(some_scalars()), lse = r.out<T>({c.heads, c.tokens}, near);
      const Tensor probs = c.keep ? r.out<T>({count, c.heads, c.longest, c.longest}, near) : Tensor();
      const Sequences sequences{r.in(Array<int>({count}, c.starts)), r.in(Array<int>({count}, c.lengths)), c.longest};
      r.ops().attention_forward(r.out<T>(means, near), lse, probs, q, k, v, sequences, heads, {c.dropout, 3}, step);
      r.ops().attention_backward(r.out<T>(shape, near), r.out<T>(keys, near), r.out<T>(values, near), dout, lse, probs, q, k, v, sequences,
                                 heads, {c.dropout, 3}, step);
    });
  // Keys, values and their gradients are columns of wider matrices.
  for (const int64_t width : {8, 6, 40})
    add_case(cases, "attention_of_columns_" + std::to_string(width), [width](Runner& r, auto type) {
      using T = decltype(type);
      const double near = tolerance<T>(2e-5, 1e-12);
      const int64_t tokens = 61, heads = 2, keys = width * heads, step = 3 * keys;
      const Shape shape{tokens, 2 * keys}, wide{tokens, step};
      const Sequences sequences{r.in(Array<int>({2}, {0, 40})), r.in(Array<int>({2}, {37, 20})), 37};
      const Tensor q = r.in(uniform<T>(shape, 1, -2, 2)), both = r.in(uniform<T>(wide, 2, -2, 2)), dout = r.in(uniform<T>(shape, 3));
      const Tensor gradients = r.out(uniform<T>(wide, 4), near), lse = r.out<T>({2 * heads, tokens}, near);
      const Tensor scalars = r.scalars(some_scalars());
      const Mat k = Mat(both).columns(keys, keys), v = Mat(both).columns(2 * keys, keys), dk = Mat(gradients).columns(0, keys),
                dv = Mat(gradients).columns(2 * keys, keys);
      r.ops().attention_forward(r.out<T>(shape, near), lse, {}, q, k, v, sequences, {2 * heads, heads}, {0.1, 3}, scalars);
      r.ops().attention_backward(r.out<T>(shape, near), dk, dv, dout, lse, {}, q, k, v, sequences, {2 * heads, heads}, {0.1, 3}, scalars);
    });
  for (const auto& [tokens, width, heads] : {std::tuple<int64_t, int64_t, int64_t>{1, 2, 1}, {37, 6, 3}, {300, 64, 5}, {0, 4, 2}})
    add_case(cases, "rotary_" + Shape{tokens, width, heads}.text(), [tokens = tokens, width = width, heads = heads](Runner& r, auto type) {
      using T = decltype(type);
      const Tensor positions = r.in(random_ids(tokens, 5000, 1)), table = r.out<T>({tokens, width}, tolerance<T>(1e-7, 1e-11));
      r.ops().run(op::RotaryTable{table, positions, 10000});
      const Shape shape{tokens, width * heads};
      for (const bool back : {false, true})
        r.ops().run(op::Rotate{r.out<T>(shape, tolerance<T>(1e-6, 1e-11)), r.in(uniform<T>(shape, 2)), table, back});
      const Tensor own = r.out(uniform<T>(shape, 3), tolerance<T>(1e-6, 1e-11));
      r.ops().run(op::Rotate{own, own, table, false});
    });
  add_case(cases, "attention_to_no_number", [](Runner& r, auto type) {
    using T = decltype(type);
    auto k = uniform<T>({20, 8}, 2);
    k[3 * 8] = static_cast<T>(NAN);  // reaches its sequence only
    const Sequences sequences{r.in(Array<int>({2}, {0, 10})), r.in(Array<int>({2}, {10, 10})), 10};
    r.ops().attention_forward(r.out<T>({20, 8}), r.out<T>({1, 20}), {}, r.in(uniform<T>({20, 8}, 1)), r.in(k), r.in(uniform<T>({20, 8}, 3)),
                              sequences, 1, {0.1, 3}, r.scalars(some_scalars()));
  });
}

}  // namespace

std::vector<Case> table_cases() {
  std::vector<Case> cases;
  add_tables(cases);
  add_ttm_tables(cases);
  add_interaction(cases);
  add_attention(cases);
  return cases;
}

std::vector<Refusal> table_refusals() {
  return {
      {"heads",
       [](Ops& o) {
         o.attention_forward(dry({5, 6}), dry({4, 5}), {}, dry({5, 6}), dry({5, 6}), dry({5, 6}), sequences(2, 3), 4, {}, {});
       },
       "4 heads in 6 features"},
      {"key heads",
       [](Ops& o) {
         o.attention_forward(dry({5, 6}), dry({3, 5}), {}, dry({5, 6}), dry({5, 4}), dry({5, 4}), sequences(2, 3), {3, 2}, {}, {});
       },
       "3 heads on 2"},
      {"value heads",
       [](Ops& o) {
         o.attention_forward(dry({5, 8}), dry({4, 5}), {}, dry({5, 8}), dry({5, 8}), dry({5, 6}), sequences(2, 3), {4, 4, false, 3}, {},
                             {});
       },
       "4 heads of keys on 3 of values"},
      {"values of no whole heads",
       [](Ops& o) {
         o.attention_forward(dry({5, 8}), dry({4, 5}), {}, dry({5, 8}), dry({5, 8}), dry({5, 5}), sequences(2, 3), {4, 4, false, 2}, {},
                             {});
       },
       "2 heads in 5 features of values"},
      {"means of the values' width",
       [](Ops& o) {
         o.attention_forward(dry({5, 8}), dry({4, 5}), {}, dry({5, 8}), dry({5, 8}), dry({5, 3}), sequences(2, 3), {4, 4, false, 1}, {},
                             {});
       },
       "out is (5, 8)"},
      {"gradients of another row step",
       [](Ops& o) {
         o.attention_backward(dry({5, 6}), dry({5, 6}), Mat(dry({5, 8})).columns(0, 6), dry({5, 6}), dry({2, 5}), {}, dry({5, 6}),
                              dry({5, 6}), dry({5, 6}), sequences(2, 3), 2, {}, {});
       },
       "the rows of dv are 8 apart, expected 6"},
      {"angles of an odd width",
       [](Ops& o) {
         o.run(op::RotaryTable{dry({5, 3}), ints({5}), 10000});
       },
       "3 features cannot be turned in pairs"},
      {"positions of angles",
       [](Ops& o) {
         o.run(op::RotaryTable{dry({5, 4}), ints({4}), 10000});
       },
       "positions is (4)"},
      {"turned heads",
       [](Ops& o) {
         o.run(op::Rotate{dry({5, 6}), dry({5, 6}), dry({5, 4}), false});
       },
       "heads of 4 in 6 features"},
      {"probabilities",
       [](Ops& o) {
         o.attention_forward(dry({5, 6}), dry({2, 5}), dry({2, 2, 3, 4}), dry({5, 6}), dry({5, 6}), dry({5, 6}), sequences(2, 3), 2, {},
                             {});
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
      {"distinct rows",
       [](Ops& o) {
         o.run(op::ScatterDistinctRows{dry({4, 3}), ints({4}), dry({5, 3}), ints({5}), 9});
       },
       "expected (5, 3)"},
      {"put rows",
       [](Ops& o) {
         o.run(op::PutRows{dry({9, 3}), dry({4, 3}), ints({5})});
       },
       "rows is (5)"},
      {"dot interaction",
       [](Ops& o) {
         o.run(op::DotInteraction{dry({5, 9}), dry({5, 4, 3}), true});
       },
       "expected (5, 13)"},
      {"first tokens",
       [](Ops& o) {
         o.first_tokens(dry({3, 4}), dry({9, 4}), sequences(2, 5));
       },
       "expected (2, 4)"},
      {"equal sequences",
       [](Ops& o) {
         o.run(op::EqualSequences{ints({4}), ints({4}), 1 << 30});
       },
       "4 sequences of 1073741824 tokens"},
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
  };
}

}  // namespace comera::test
