// Optimizers, 8-bit numbers, ranks and singular directions.
#include "core/base/rounding.h"
#include "core/ops/quant_math.h"
#include "tests/ops/cases/cases.h"
#include "tests/ops/dry.h"

namespace comera::test {
namespace {

Array<unsigned char> codes(int64_t count, uint32_t site) {
  Array<unsigned char> out({count});
  const Array<int> ids = random_ids(count, 256, site);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<unsigned char>(ids[i]);
  return out;
}

// Three layers: two bonds, one bond, three bonds.
template <class T>
struct Ranks {
  Array<T> ranks, weight{{3}, {T(1), T(0.5), T(2)}};
  Array<int> bond_begin{{7}, {0, 40, 45, 80, 81, 90, 200}}, layer_bond{{4}, {0, 2, 3, 6}}, modes{{9}, {4, 6, 8, 10, 12, 3, 5, 7, 9}};
  Ranks() : ranks(uniform<T>({200}, 31, -0.2, 1)) {}
  RankTable in(Runner& r) const { return {r.in(ranks), r.in(bond_begin), r.in(layer_bond), r.in(modes), r.in(weight)}; }
};

void add_optimizers(std::vector<Case>& cases) {
  for (int64_t n : kSizes) {
    for (AdamFlavour flavour : {AdamFlavour::torch, AdamFlavour::huggingface, AdamFlavour::bitsandbytes})
      add_case(cases, "adam_" + std::to_string(static_cast<int>(flavour)) + "_" + std::to_string(n), [n, flavour](Runner& r, auto type) {
        using T = decltype(type);
        const AdamRule rule{.flavour = flavour};
        const Tensor grad = r.in(uniform<T>({n}, 1)), step = r.scalars(some_scalars());
        const Tensor m = r.out(uniform<T>({n}, 3)), v = r.out(uniform<T>({n}, 4, 0, 1)), w = r.out(uniform<T>({n}, 2));
        r.ops().adam(w, grad, m, v, rule, ParamGroup::core, step);
        r.ops().adam_update(r.out<T>({n}), grad, m, v, rule, ParamGroup::rest, step);
        r.ops().weight_decay(w, ParamGroup::rank, step);
      });
    add_case(cases, "adam8bit_" + std::to_string(n), [n](Runner& r, auto type) {
      using T = decltype(type);
      const int64_t blocks = ceil_div(n, kQuantBlock);
      auto grad = uniform<T>({n}, 1);
      if (n > 40) grad[7] = static_cast<T>(NAN), grad[9] = static_cast<T>(INFINITY);
      const Tensor step = r.scalars(some_scalars()), w = r.out(uniform<T>({n}, 2));
      // A sum that is rounded otherwise may fall to the neighbouring code.
      const Tensor m8 = r.out(codes(n, 3), 1), v8 = r.out(codes(n, 4), 1);
      const Tensor max_m = r.out(uniform<float>({blocks}, 5, 0, 1)), max_v = r.out(uniform<float>({blocks}, 6, 0, 1));
      r.ops().adam8bit(w, r.in(grad), m8, v8, max_m, max_v, {.flavour = AdamFlavour::bitsandbytes}, ParamGroup::core, step);
    });
    add_case(cases, "sgd_" + std::to_string(n), [n](Runner& r, auto type) {
      using T = decltype(type);
      for (const double limit : {0.3, static_cast<double>(INFINITY)}) {
        auto grad = uniform<T>({n}, 1);
        if (limit < 1) grad[n / 2] = static_cast<T>(-INFINITY);
        const SgdTensors one[] = {{r.out(uniform<T>({n}, 2)), r.in(grad), ParamGroup::core}};
        r.ops().run(op::Sgd{one, limit, r.scalars(some_scalars())});
      }
    });
    add_case(cases, "adagrad_" + std::to_string(n), [n](Runner& r, auto type) {
      using T = decltype(type);
      const AdagradTensors one[] = {
          {r.out(uniform<T>({n}, 2)), r.in(uniform<T>({n}, 1)), r.out(uniform<T>({n}, 3, 0, 1)), ParamGroup::core}};
      r.ops().run(op::Adagrad{one, 1e-10, r.scalars(some_scalars())});
    });
    add_case(cases, "codes_" + std::to_string(n), [n](Runner& r, auto type) {
      using T = decltype(type);
      const int64_t blocks = ceil_div(n, kQuantBlock);
      for (bool is_signed : {false, true}) {
        const Tensor max = r.in(uniform<float>({blocks}, 5, 0, 1));
        r.ops().dequantise8bit(r.out<T>({n}), r.in(codes(n, 7)), max, is_signed);
        r.ops().quantise8bit(r.out(codes(n, 9), 1), r.out<float>({blocks}), r.in(uniform<T>({n}, 8, is_signed ? -1 : 0)), is_signed);
        r.ops().quantise8bit(r.out(codes(n, 9), 0), r.out<float>({blocks}), r.in(Array<T>({n}, T(0))), is_signed);
        for (const double small : {1e-9, -1e-9}) {
          Array<T> x({n}, static_cast<T>(small));
          x[0] = 1;
          for (const NeverZero never : {NeverZero::none, NeverZero::negative, NeverZero::positive})
            r.ops().quantise8bit(r.out(codes(n, 9), 0), r.out<float>({blocks}), r.in(x), is_signed, never);
        }
      }
    });
    add_case(cases, "penalty_" + std::to_string(n), [n](Runner& r, auto type) {
      using T = decltype(type);
      const Tensor x = r.in(uniform<T>({n}, 1));
      StepResults start;
      start.core_norm2 = 3;
      const Tensor results = r.results(start, 1e-12);
      r.ops().sum_of_squares(results, x);
      r.ops().sum_of_squares(results, x);
      StepScalars scalars = some_scalars();
      for (double paper : {0.0, 1.0}) {
        scalars.paper = paper;
        scalars.beta = 0.3;
        r.ops().core_penalty_backward(r.out(uniform<T>({n}, 2)), x, r.scalars(scalars));
      }
    });
  }
}

void add_adafactor(std::vector<Case>& cases) {
  // The last: more rows than pieces of sums, more columns than threads.
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {1, 33}, {31, 1}, {40, 33}, {1100, 300}})
    for (const bool one : {false, true})  // a second moment an element
      add_case(cases, "adafactor_" + Shape{rows, columns}.text() + (one ? "_unfactored" : ""),
               [rows = rows, columns = columns, one](Runner& r, auto type) {
                 using T = decltype(type);
                 const Shape shape{rows, columns};
                 const Tensor g = r.in(uniform<T>(shape, 1)), step = r.scalars(some_scalars());
                 const Tensor row = r.out(uniform<T>({one ? rows * columns : rows}, 2, 0.01, 1));
                 const Tensor column = one ? Tensor() : r.out(uniform<T>({columns}, 3, 0.01, 1));
                 r.ops().factored_moments(row, column, g, 0.8, 1e-30, step);
                 for (const bool corrected : {false, true})
                   r.ops().run(op::FactoredMoments{row, column, g, {.beta = 0.9, .corrected = corrected}, 1e-30, step});
                 for (const double clip : {0.1, 10.0})
                   r.ops().run(op::ClippedMoment{r.out(uniform<T>(shape, 6)), r.out(uniform<T>(shape, 7)), 0.9, clip});
                 for (const bool moment : {false, true}) {
                   const Tensor u = r.out<T>(shape), m = moment ? r.out(uniform<T>(shape, 4)) : Tensor(), w = r.out(uniform<T>(shape, 5));
                   r.ops().factored_update(u, g, row, column);
                   r.ops().adafactor_update(
                       u, w, m,
                       {.beta1 = moment ? 0.9 : 0, .clip = one ? INFINITY : 1, .scale_parameter = moment, .relative_step = !moment},
                       ParamGroup::core, step);
                 }
               });
}

void add_lists_and_sums(std::vector<Case>& cases) {
  add_case(cases, "adam_list", [](Runner& r, auto type) {
    using T = decltype(type);
    std::vector<AdamTensors> all;
    std::vector<Adam8bitTensors> all8;
    std::vector<SgdTensors> plain;
    std::vector<AdagradTensors> summed;
    uint32_t seed = 40;
    for (const int64_t n : {int64_t{3}, int64_t{0}, int64_t{1023}, int64_t{2049}, int64_t{1}}) {
      const int64_t blocks = ceil_div(n, kQuantBlock);
      const ParamGroup group = static_cast<ParamGroup>(all.size() % 3);
      all.push_back({r.out(uniform<T>({n}, ++seed)), r.in(uniform<T>({n}, ++seed)), r.out(uniform<T>({n}, ++seed)),
                     r.out(uniform<T>({n}, ++seed, 0, 1)), group});
      all8.push_back({r.out(uniform<T>({n}, ++seed)), r.in(uniform<T>({n}, ++seed)), r.out(codes(n, ++seed), 1), r.out(codes(n, ++seed), 1),
                      r.out(uniform<float>({blocks}, ++seed, 0, 1)), r.out(uniform<float>({blocks}, ++seed, 0, 1)), group});
      plain.push_back({r.out(uniform<T>({n}, ++seed)), r.in(uniform<T>({n}, ++seed)), group});
      summed.push_back({r.out(uniform<T>({n}, ++seed)), r.in(uniform<T>({n}, ++seed)), r.out(uniform<T>({n}, ++seed, 0, 1)), group});
    }
    const Tensor step = r.scalars(some_scalars());
    r.ops().adam(all, {}, step);
    r.ops().adam8bit(all8, {.flavour = AdamFlavour::bitsandbytes}, step, NeverZero::positive);
    r.ops().run(op::Sgd{plain, 0.3, step});
    r.ops().run(op::Adagrad{summed, 1e-10, step});
  });
  for (const Shape& shape : {Shape{37, 16}, Shape{5, 1}, Shape{3, 700}})
    add_case(cases, "adagrad_rows_" + std::to_string(shape[1]), [shape](Runner& r, auto type) {
      using T = decltype(type);
      Array<T> grad = uniform<T>(shape, 1), sum = uniform<T>({shape[0]}, 3, 0, 1);
      sum[1] = 0;  // a row that was never looked up
      for (int64_t j = 0; j < shape[1]; ++j) grad[shape[1] + j] = 0;
      r.ops().run(op::AdagradRows{r.out(uniform<T>(shape, 2)), r.in(grad), r.out(sum), 1e-10, ParamGroup::core, r.scalars(some_scalars())});
    });
  add_case(cases, "sum_of_many_squares", [](Runner& r, auto type) {
    using T = decltype(type);
    r.ops().sum_of_squares(r.results({}, 1e-11), r.in(uniform<T>({50000}, 1)));
  });
}

void add_gradients(std::vector<Case>& cases) {
  for (const int64_t n : kSizes)
    add_case(cases, "parts_" + std::to_string(n), [n](Runner& r, auto type) {
      using T = decltype(type);
      StepResults start;
      start.ce = 1.7, start.examples = 5, start.correct = 3, start.ce_weight = 0.3;
      start.part_loss = 2.5, start.part_examples = 4, start.part_correct = 1;
      const Tensor results = r.results(start, 1e-12);
      r.ops().run(op::AddPart{results, r.out(uniform<T>({n}, 1))});
      r.ops().run(op::FinishParts{results});
      r.ops().run(op::WeightGradients{r.out(uniform<T>({n}, 2)), results});
    });
  for (const double norm2 : {0.0, 0.2, 9.0, static_cast<double>(INFINITY), static_cast<double>(NAN)})
    add_case(cases, "clip_" + std::to_string(norm2), [norm2](Runner& r, auto type) {
      using T = decltype(type);
      StepResults start;
      start.grad_norm2 = norm2;
      start.core_norm2 = 3;
      const Tensor results = r.results(start, 1e-11), y = r.out(uniform<T>({5000}, 1));
      r.ops().run(op::ClipGradients{y, results, 0.5});
      r.ops().run(op::SumOfSquares{results, r.in(uniform<T>({5000}, 2)), true});
    });
}

void add_stashes(std::vector<Case>& cases) {
  struct Stash {
    int64_t rows, width, groups;
  };
  for (const Stash& c : {Stash{1, 1, 1}, {33, 31, 31}, {32, 96, 12}, {1025, 6, 2}, {5, 1024, 4}, {0, 8, 2}, {4, 6, 2}, {2, 10, 10}})
    add_case(cases, "stash_" + Shape{c.rows, c.width, c.groups}.text(), [c](Runner& r, auto type) {
      using T = decltype(type);
      Array<T> range({c.groups, 2}, T(0.75));
      range[0] = T(-1);  // first use
      const Tensor used = r.out<T>({c.groups, 2}), step = r.scalars(some_scalars());
      const Tensor kept = r.out(Array<unsigned char>({c.rows, c.width}), 1), running = r.out(range);
      r.ops().int8_keep(kept, used, running, r.in(uniform<T>({c.rows, c.width}, 1, -3, 2)), c.groups, 0.9, 4, step);
      const Tensor given = r.in(Array<T>({c.groups, 2}, T(1.5)));
      Array<unsigned char> fixed = codes(c.rows * c.width, 6);
      fixed.shape = {c.rows, c.width};
      r.ops().int8_load(r.out<T>({c.rows, c.width}), r.in(fixed), given, c.groups);
    });
  for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{33}, int64_t{1025}})
    add_case(cases, "bf16_stash_" + std::to_string(n), [n](Runner& r, auto type) {
      using T = decltype(type);
      const Tensor kept = r.out(Array<unsigned short>({n}), 0.5);
      r.ops().bf16_keep(kept, r.in(uniform<T>({n}, 1, -3, 2)));
      r.ops().bf16_load(r.out<T>({n}, 0), kept);
      const Tensor rounded = r.out(Array<unsigned short>({n}, 7), 0);
      r.ops().bf16_keep(rounded, r.in(uniform<T>({n}, 2, -3, 2)), 77, r.scalars(some_scalars()));
    });
  for (const Shape& shape : {Shape{1, 1}, {3, 11}, {0, 8}, {33, 31}, {4, 256}, {1025, 5}})
    for (const GroupCodes& how : {GroupCodes{8}, GroupCodes{4}, GroupCodes{8, 7}, GroupCodes{4, 7}, GroupCodes{4, 4096}})
      add_case(cases, "group_codes_" + shape.text() + "_" + std::to_string(how.bits) + "_" + std::to_string(how.group),
               [shape, how](Runner& r, auto type) {
                 using T = decltype(type);
                 const int64_t groups = how.groups(shape.count()), bytes = how.bytes(shape.count());
                 const Tensor x = r.in(uniform<T>(shape, 1, -3, 2));
                 for (const uint32_t site : {0u, 5u})
                   r.ops().run(op::GroupQuantise{r.out(Array<unsigned char>({bytes}, 77), 0), r.out<T>({groups}), r.out<T>({groups}, 0), x,
                                                 how, site, site != 0 ? r.scalars(some_scalars()) : Tensor()});
                 r.ops().run(op::GroupDequantise{r.out<T>(shape), r.in(codes(bytes, 6)), r.in(uniform<T>({groups}, 2, 0, 1)),
                                                 r.in(uniform<T>({groups}, 3, 0, 15)), how});
               });
}

void add_ranks(std::vector<Case>& cases) {
  for (const Shape& shape : {Shape{1, 1, 1}, {31, 33}, {5, 7, 32}, {40, 30, 5}, {3, 1025}, {0, 4}})
    for (double pruning : {0.0, 1.0})
      add_case(cases, "rank_mask_" + shape.text() + "_" + std::to_string(static_cast<int>(pruning)),
               [shape, pruning](Runner& r, auto type) {
                 using T = decltype(type);
                 StepScalars scalars = some_scalars();
                 scalars.pruning = pruning;
                 const Tensor step = r.scalars(scalars), u = r.in(uniform<T>(shape, 1)), de = r.in(uniform<T>(shape, 3));
                 const Tensor d = r.in(uniform<T>({shape[-1]}, 2, -0.3, 1));
                 r.ops().rank_mask(r.out<T>(shape), u, d, step);
                 r.ops().rank_mask_backward(r.out<T>(shape), r.out<T>({shape[-1]}, tolerance<T>(5e-5, 1e-12)), de, u, d, step);
                 const Tensor in_place = r.out(uniform<T>(shape, 4));  // dU may be dE
                 r.ops().rank_mask_backward(in_place, r.out<T>({shape[-1]}, tolerance<T>(5e-5, 1e-12)), in_place, u, d, step);
               });
  for (int mode : {0, 1, 2})        // reference, selective, paper
    for (int stage : {0, 1, 2, 3})  // pruning off, early, late, late at rest
      for (bool dead : {false, true})
        add_case(cases, "rank_objective_" + std::to_string(mode) + std::to_string(stage) + std::to_string(dead), [=](Runner& r, auto type) {
          using T = decltype(type);
          Ranks<T> ranks;
          if (dead)
            for (int b = 80; b < 81; ++b) ranks.ranks[b] = T(-1);  // a bond without entries: its layer is gone
          else
            ranks.ranks[80] = T(0.5);
          StepScalars scalars = some_scalars();
          scalars.selective = mode == 1;
          scalars.paper = mode == 2;
          scalars.pruning = stage > 0;
          scalars.late = stage > 1;
          scalars.pause_rank_push = stage == 3;
          scalars.size_target = 500;
          scalars.gamma = 0.02, scalars.beta = 0.01, scalars.late_w2 = 1e-3;
          scalars.threshold = dead ? -0.1 : 0.01;  // a threshold under 0 keeps negative entries
          StepResults start;
          start.ce = 1.7;
          start.core_norm2 = 5;
          const RankTable table = ranks.in(r);
          const Tensor results = r.results(start, 1e-11), step = r.scalars(scalars);
          r.ops().rank_objective(results, table, step);
          r.ops().rank_objective_backward(r.out(uniform<T>({200}, 9)), table, results, step);
        });
  add_case(cases, "rank_objective_without_ranks", [](Runner& r, auto) {
    StepResults start;
    start.ce = 1.7;
    r.ops().rank_objective(r.results(start, 1e-12), {}, r.scalars(some_scalars()));
  });
}

void add_singular_directions(std::vector<Case>& cases) {
  for (const Shape& shape : {Shape{1, 1}, {1, 5}, {5, 1}, {6, 9}, {9, 6}, {8, 8}, {33, 5}, {6, 70}})
    for (bool left : {false, true})
      add_case(cases, "singular_basis_" + shape.text() + (left ? "_left" : "_right"), [shape, left](Runner& r, auto type) {
        using T = decltype(type);
        const int64_t rank = std::max<int64_t>(1, std::min(shape[0], shape[1]) / 2);
        Array<T> g = uniform<T>(shape, 1);
        // Singular values well apart, as the leading ones of gradients are: nearly equal ones have no directions of their own.
        for (int64_t i = 0; i < shape[0]; ++i)
          for (int64_t j = 0; j < shape[1]; ++j)
            g[i * shape[1] + j] *= static_cast<T>(std::pow(0.5, static_cast<double>(std::min(i, j))) * 1e-6);
        const Shape of_basis = left ? Shape{shape[0], rank} : Shape{rank, shape[1]};
        r.ops().singular_basis(r.out<T>(of_basis, tolerance<T>(2e-3, 1e-8)), r.in(g), left);
        for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
          g[g.count() - 1] = static_cast<T>(bad);
          r.ops().singular_basis(r.out(uniform<T>(of_basis, 2), 0), r.in(g), left);  // stays
        }
      });
}

void add_projections(std::vector<Case>& cases) {
  for (const Shape& shape : {Shape{1, 1}, {1, 5}, {6, 9}, {6, 6}, {5, 70}, {3, 1025}})
    add_case(cases, "orthonormal_" + shape.text(), [shape](Runner& r, auto type) {
      using T = decltype(type);
      r.ops().run(op::Orthonormal{r.out(uniform<T>(shape, 1), tolerance<T>(1e-4, 1e-12))});
    });
  for (const Shape& shape : {Shape{1, 1}, {1, 5}, {5, 1}, {6, 9}, {33, 70}, {300, 40}})
    for (const bool normalised : {false, true})
      add_case(cases, "coap_directions_" + shape.text() + (normalised ? "_normalised" : ""), [shape, normalised](Runner& r, auto type) {
        using T = decltype(type);
        const Tensor lost = r.out(uniform<T>(shape, 1)), moment = r.out(uniform<T>(shape, 2)), g = r.in(uniform<T>(shape, 3));
        r.ops().run(op::CoapDirections{lost, moment, g, normalised});
      });
  for (const Shape& shape : {Shape{1, 1}, {1, 5}, {5, 1}, {6, 9}, {33, 70}, {300, 40}})
    for (const int64_t rank : {1, 7})
      for (const std::string kind : {"right", "left", "normalised", "without_moment"})
        add_case(cases, "coap_factors_" + shape.text() + "_" + std::to_string(rank) + "_" + kind,
                 [shape, rank, kind](Runner& r, auto type) {
                   using T = decltype(type);
                   const bool with_moment = kind != "without_moment";
                   const Shape rows = {shape[0], rank};
                   const auto in = [&](uint32_t seed) { return with_moment ? r.in(uniform<T>(rows, seed)) : Tensor(); };
                   const auto out = [&](uint32_t seed) { return with_moment ? r.out(uniform<T>(rows, seed)) : Tensor(); };
                   const Tensor s = r.out(uniform<T>({rank, rank}, 1)), q = r.out(uniform<T>({rank, rank}, 2)), of_g = out(3),
                                of_moment = out(4);
                   const Tensor g = r.in(uniform<T>(shape, 5)), u = in(6), gv = in(7);
                   Array<T> positive = uniform<T>(rows, 6);  // u . uv = |C_i|^2 > 0
                   for (int64_t i = 0; i < positive.count(); ++i) positive[i] *= static_cast<T>(1 + i % 3);
                   const Tensor uv = with_moment ? r.in(positive) : Tensor();
                   r.ops().run(op::CoapFactors{s, q, of_g, of_moment, g, u, gv, uv, kind == "left", kind == "normalised"});
                 });
  for (const Shape& shape : {Shape{1, 1}, {1, 5}, {5, 1}, {33, 70}, {1025, 4}})
    for (const bool left : {false, true})
      add_case(cases, "lazy_refresh_" + shape.text() + (left ? "_left" : "_right"), [shape, left](Runner& r, auto type) {
        using T = decltype(type);
        const Array<T> basis = uniform<T>(shape, 1);
        for (const int calls : {0, 1, 2, 3, 4}) {
          Array<int> counts({2});
          counts[0] = calls, counts[1] = calls;
          const Tensor last = r.out(uniform<T>({shape[left ? 0 : 1]}, 1), 0);  // as the basis where that is one row
          r.ops().run(op::LazyRefresh{r.out(uniform<T>({3}, 2, 0, 1)), last, r.out(counts, 0), r.in(basis), left, 0.01, 3});
        }
      });
  for (int64_t n : kSizes)
    add_case(cases, "clipped_step_" + std::to_string(n), [n](Runner& r, auto type) {
      using T = decltype(type);
      for (const double size : {1e-6, 1e-2, 10.0})
        r.ops().run(op::ClippedStep{r.out(uniform<T>({n}, 1)), r.in(uniform<T>({n}, 2, -size, size)), 0.1});
      for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
        Array<T> x = uniform<T>({n}, 2);
        x[n - 1] = static_cast<T>(bad);
        r.ops().run(op::ClippedStep{r.out(uniform<T>({n}, 1), 0), r.in(x), 0.1});  // stays
      }
    });
}

void add_flora(std::vector<Case>& cases) {
  for (const Shape& shape : {Shape{1, 1}, {5, 33}, {40, 30}})
    for (const int64_t gap : {3, 4})  // step 6 is the last of its draws, and is not
      for (const bool right : {false, true})
        add_case(cases, "flora_" + shape.text() + "_" + std::to_string(gap) + (right ? "_right" : "_left"),
                 [shape, gap, right](Runner& r, auto type) {
                   using T = decltype(type);
                   const Shape of_history = right ? Shape{shape[0], 2} : Shape{2, shape[1]};
                   r.ops().run(op::FloraHistory{r.out(uniform<T>(shape, 1)), r.out(uniform<T>(of_history, 2)), r.in(uniform<T>(shape, 3)),
                                                0.9, gap, r.scalars(some_scalars())});
                 });
}

void add_apollo(std::vector<Case>& cases) {
  // The last two: more rows than pieces of sums, more columns than threads.
  for (const Shape& shape : {Shape{40, 33}, {1, 1}, {1, 33}, {31, 1}, {1100, 3}, {5, 1030}})
    for (const Channels channels : {Channels::rows, Channels::columns, Channels::all})
      add_case(cases, "apollo_" + shape.text() + "_" + std::to_string(static_cast<int>(channels)), [shape, channels](Runner& r, auto type) {
        using T = decltype(type);
        const Shape of_scale{channels == Channels::all ? 1 : shape[channels == Channels::rows ? 0 : 1]};
        const AdamRule adam{.flavour = AdamFlavour::huggingface, .eps = 1e-6};
        const Tensor m = r.out(uniform<T>(shape, 2)), v = r.out(uniform<T>(shape, 3, 0, 1)), g = r.in(uniform<T>(shape, 4));
        r.ops().run(op::ApolloScales{r.out<T>(of_scale), r.in(uniform<T>(shape, 1)), m, v, adam, channels});
        const Tensor scale = r.in(uniform<T>(of_scale, 5, 0.5, 2)), step = r.scalars(some_scalars());
        for (const double before : {0.0, 1e-3, 1e3})  // the first step; too long; not
          for (const bool first : {false, true})
            r.ops().run(op::ApolloStep{r.out(uniform<T>(shape, 6)),
                                       r.out(Array<T>({1}, static_cast<T>(before))),
                                       g,
                                       scale,
                                       adam,
                                       {.channels = channels, .alpha = 2, .alpha_first = first},
                                       ParamGroup::core,
                                       step});
      });
}

}  // namespace

std::vector<Case> training_cases() {
  std::vector<Case> cases;
  add_optimizers(cases);
  add_adafactor(cases);
  add_lists_and_sums(cases);
  add_gradients(cases);
  add_stashes(cases);
  add_ranks(cases);
  add_singular_directions(cases);
  add_projections(cases);
  add_apollo(cases);
  add_flora(cases);
  return cases;
}

std::vector<Refusal> training_refusals() {
  return {
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
         o.run(op::Sgd{one, 0, step()});
       },
       "limit 0"},
      {"an epsilon",
       [](Ops& o) {
         const AdagradTensors one[] = {{dry({6}), dry({6}), dry({6})}};
         o.run(op::Adagrad{one, 0, step()});
       },
       "eps 0"},
      {"sums of entries",
       [](Ops& o) {
         const AdagradTensors one[] = {{dry({6, 2}), dry({6, 2}), dry({6})}};
         o.run(op::Adagrad{one, 1e-10, step()});
       },
       "sum is (6) f32, expected 12 elements f32"},
      {"sums of rows",
       [](Ops& o) {
         o.run(op::AdagradRows{dry({6, 2}), dry({6, 2}), dry({6, 2}), 1e-10, ParamGroup::rest, step()});
       },
       "sum is (6, 2) f32, expected 6 elements f32"},
      {"group", [](Ops& o) { o.weight_decay(dry({6}), static_cast<ParamGroup>(4), step()); }, "parameter group 4"},
      {"blocks of 256",
       [](Ops& o) { o.adam8bit(dry({257}), dry({257}), bytes({257}), bytes({257}), dry({1}), dry({2}), {}, ParamGroup::core, step()); },
       "absmax is (1) f32, expected (2)"},
      {"rows and columns",
       [](Ops& o) {
         o.factored_moments(dry({3}), dry({4}), dry({3, 5}), 0.8, 0, step());
       },
       "column is (4) f32, expected 5 elements f32"},
      {"a moment an element", [](Ops& o) { o.factored_update(dry({6}), dry({6}), dry({5}), {}); },
       "row is (5) f32, expected 6 elements f32"},
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
      {"codes of 5 bits",
       [](Ops& o) {
         o.run(op::GroupQuantise{bytes({24}), dry({1}), dry({1}), dry({4, 6}), {5}});
       },
       "codes of 5 bits"},
      {"two codes a byte",
       [](Ops& o) {
         o.run(op::GroupDequantise{dry({3, 7}), bytes({10}), dry({1}), dry({1}), {4}});
       },
       "codes is (10) u8, expected 11 elements"},
      {"groups of no elements",
       [](Ops& o) {
         o.run(op::GroupDequantise{dry({3, 7}), bytes({21}), dry({1}), dry({1}), {8, 0}});
       },
       "groups of 0"},
      {"refreshes that do not become rarer",
       [](Ops& o) {
         o.run(op::LazyRefresh{dry({5}), dry({4}), ints({2}), dry({4, 3}), true, 0.4, 1});
       },
       "lazy_refresh: factor 1"},
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
      {"more rows than entries in one",
       [](Ops& o) {
         o.run(op::Orthonormal{dry({5, 4})});
       },
       "5 rows of 4 entries"},
      {"a moment without u",
       [](Ops& o) {
         o.run(op::CoapFactors{dry({2, 2}), dry({2, 2}), dry({4, 2}), {}, dry({4, 6}), {}, {}, {}});
       },
       "tensors of a moment, but u is missing"},
      {"no step",
       [](Ops& o) {
         o.run(op::ClippedStep{dry({4}), dry({4}), 0});
       },
       "clipped_step: size 0"},
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
      {"growth below 1",
       [](Ops& o) {
         o.run(op::ApolloStep{dry({4, 5}), dry({1}), dry({4, 5}), dry({4}), {}, {.growth = 0.5}, ParamGroup::core, step()});
       },
       "growth 0.5"},
  };
}

}  // namespace comera::test
