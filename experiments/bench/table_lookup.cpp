// Lookups in a TTM table, forward and backward: merged halves and equal ids once, as the program has them, against a contraction of the
// cores for each id, and against a dense table that exceeds the cache. One JSON line a batch: least times of several in ms, memory in
// bytes.
//   table_lookup [threads] [seconds a measurement]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "core/config/tt_shape.h"
#include "core/layers/stash.h"
#include "core/layers/ttm_embedding.h"
#include "core/ops/device.h"
#include "core/tensor/memory.h"

using namespace comera;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double least(double seconds, const std::function<void()>& body) {
  double best = 1e9;
  const double until = now() + seconds;
  for (int i = 0; i < 3 || now() < until; ++i) {
    const double begin = now();
    body();
    best = std::min(best, now() - begin);
  }
  return 1e3 * best;
}

// body(begin, end) over [0, count) on some threads.
void in_parallel(int threads, int64_t count, const std::function<void(int64_t, int64_t, int)>& body) {
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) pool.emplace_back([=, &body] { body(count * t / threads, count * (t + 1) / threads, t); });
  for (std::thread& thread : pool) thread.join();
}

// y_t = E_1[i_1] E_2[i_2] ... for each id on its own: left to right, intermediate products kept for backward, as tensor-train tables are
// computed by batched products. Gradients of the cores are summed by thread, then over the threads.
class PerId {
 public:
  PerId(const TTShape& shape, const std::vector<Tensor>& cores, int threads) : shape_(shape), threads_(threads) {
    const size_t k = cores.size();
    for (size_t c = 0; c < k; ++c) {  // (m, r, n r'): a slice of a row mode lies in one piece
      const int64_t r = shape.ranks[c], m = shape.in_modes[c], n = shape.out_modes[c], after = shape.ranks[c + 1];
      std::vector<float> core(static_cast<size_t>(r * m * n * after));
      for (int64_t a = 0; a < r; ++a)
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n * after; ++j)
            core[static_cast<size_t>((i * r + a) * n * after + j)] = cores[c].data<float>()[(a * m + i) * n * after + j];
      cores_.push_back(std::move(core));
    }
  }

  int64_t kept_bytes(int64_t ids) const {
    int64_t width = 1, entries = 0;
    for (size_t c = 0; c < cores_.size(); ++c) entries += (width *= shape_.out_modes[c]) * shape_.ranks[c + 1];
    return 4 * ids * entries;
  }

  void forward(const std::vector<int>& ids) {
    kept_.resize(cores_.size());
    int64_t width = 1;
    for (size_t c = 0; c < cores_.size(); ++c)
      kept_[c].resize(ids.size() * static_cast<size_t>((width *= shape_.out_modes[c]) * shape_.ranks[c + 1]));
    in_parallel(threads_, static_cast<int64_t>(ids.size()), [&](int64_t begin, int64_t end, int) {
      for (int64_t t = begin; t < end; ++t) {
        int64_t rows = 1;
        for (size_t c = 0; c < cores_.size(); ++c) {
          const int64_t r = shape_.ranks[c], columns = shape_.out_modes[c] * shape_.ranks[c + 1];
          const float *slice = slice_of(c, ids[static_cast<size_t>(t)]), *left = c == 0 ? &one_ : kept(c - 1, t, rows * r);
          float* out = kept(c, t, rows * columns);
          std::fill(out, out + rows * columns, 0.0f);
          for (int64_t row = 0; row < rows; ++row)
            for (int64_t a = 0; a < r; ++a)
              for (int64_t j = 0; j < columns; ++j) out[row * columns + j] += left[row * r + a] * slice[a * columns + j];
          rows *= shape_.out_modes[c];
        }
      }
    });
  }

  void backward(const std::vector<int>& ids, const float* dy) {
    gradients_.assign(static_cast<size_t>(threads_), {});
    in_parallel(threads_, static_cast<int64_t>(ids.size()), [&](int64_t begin, int64_t end, int thread) {
      std::vector<std::vector<float>>& own = gradients_[static_cast<size_t>(thread)];
      for (const std::vector<float>& core : cores_) own.emplace_back(core.size(), 0.0f);
      std::vector<float> dout, dleft;
      for (int64_t t = begin; t < end; ++t) {
        dout.assign(dy + t * shape_.out, dy + (t + 1) * shape_.out);
        int64_t rows = shape_.padded_out();
        for (size_t c = cores_.size(); c-- > 0;) {
          rows /= shape_.out_modes[c];
          const int64_t r = shape_.ranks[c], columns = shape_.out_modes[c] * shape_.ranks[c + 1];
          const float *slice = slice_of(c, ids[static_cast<size_t>(t)]), *left = c == 0 ? &one_ : kept(c - 1, t, rows * r);
          float* dslice = own[c].data() + (slice - cores_[c].data());
          dleft.assign(static_cast<size_t>(rows * r), 0.0f);
          for (int64_t row = 0; row < rows; ++row)
            for (int64_t a = 0; a < r; ++a) {
              float sum = 0;
              for (int64_t j = 0; j < columns; ++j) {
                sum += dout[static_cast<size_t>(row * columns + j)] * slice[a * columns + j];
                dslice[a * columns + j] += left[row * r + a] * dout[static_cast<size_t>(row * columns + j)];
              }
              dleft[static_cast<size_t>(row * r + a)] = sum;
            }
          dout.swap(dleft);
        }
      }
    });
    for (size_t thread = 1; thread < gradients_.size(); ++thread)
      for (size_t c = 0; c < cores_.size(); ++c)
        for (size_t i = 0; i < cores_[c].size(); ++i) gradients_[0][c][i] += gradients_[thread][c][i];
  }

  const float* y() const { return kept_.back().data(); }

 private:
  const float* slice_of(size_t core, int64_t id) const {
    for (size_t c = cores_.size(); c-- > core + 1;) id /= shape_.in_modes[c];
    return cores_[core].data() + id % shape_.in_modes[core] * shape_.ranks[core] * shape_.out_modes[core] * shape_.ranks[core + 1];
  }
  float* kept(size_t core, int64_t t, int64_t entries) { return kept_[core].data() + t * entries; }

  const TTShape shape_;
  const int threads_;
  const float one_ = 1;
  std::vector<std::vector<float>> cores_, kept_;
  std::vector<std::vector<std::vector<float>>> gradients_;
};

// Zipf: the probability of the n-th most frequent id is in proportion to 1 / n; which ids are frequent is drawn.
std::vector<int> drawn_ids(int64_t count, int64_t rows, bool zipf) {
  std::mt19937_64 random(7);
  std::vector<int> ids;
  for (int64_t i = 0; i < count; ++i) {
    const double u = std::uniform_real_distribution<double>(0, 1)(random);
    const auto rank = zipf ? static_cast<uint64_t>(std::exp(u * std::log(static_cast<double>(rows))))
                           : static_cast<uint64_t>(u * static_cast<double>(rows));
    ids.push_back(static_cast<int>(zipf ? rank * 0x9E3779B97F4A7C15u % static_cast<uint64_t>(rows) : rank));
  }
  return ids;
}

struct Bench {
  int threads;
  double seconds;
  std::unique_ptr<Device> device = open_cpu_device(threads);
  Memory memory{*device};
  StepScalars scalars = {};
  StepResults results = {};

  Ctx context(Arena& arena, Stash& stash) {
    return {device->ops(), arena, stash, Tensor(&scalars, {int64_t{sizeof scalars}}, DType::u8),
            Tensor(&results, {int64_t{sizeof results}}, DType::u8)};
  }

  void table(const char* name, int64_t rows, int64_t width, const TTOptions& options) {
    std::vector<Problem> problems;
    const TTShape shape = table_shape(rows, width, options, name, problems);
    const std::unique_ptr<Stash> stash = make_exact_stash();
    ParamSet params;
    LayerFactory factory(params, *stash);
    TTMEmbedding layer(name, shape, factory);
    params.allocate(memory, DType::f32);
    params.initialise(*device, 1);
    std::vector<Tensor> cores;
    for (const Param* core : params.rank_layers()[0].cores) cores.push_back(core->value);
    PerId per_id(shape, cores, threads);
    Buffer dense_memory(memory, rows * width * 4, Purpose::data);
    const Tensor dense(dense_memory.data(), {rows, width}, DType::f32);
    device->ops().fill(dense, 0.5);

    for (const int64_t count : {int64_t{10000}, int64_t{20000}, int64_t{40000}})
      for (const bool zipf : {false, true}) {
        std::vector<int> ids = drawn_ids(count, rows, zipf);
        const Tensor id(ids.data(), {count}, DType::i32);
        Buffer batch(memory, 4 * count * width * 4 + 4 * count, Purpose::data);
        float* base = static_cast<float*>(batch.data());
        const Tensor dy(base, {count, width}, DType::f32), y(base + count * width, {count, width}, DType::f32),
            drows(base + 2 * count * width, {std::min(count, rows), width}, DType::f32),
            taken(base + 3 * count * width, {count, width}, DType::f32),
            place(base + 4 * count * width, {std::min(count, rows)}, DType::i32);
        device->ops().fill(dy, 0.25);
        Arena arena;
        const auto step = [&] {
          stash->forget();
          Ctx ctx = context(arena, *stash);
          const Tensor out = layer.forward(ctx, id);
          if (!ctx.ops.dry) device->ops().copy(y, out);
          Tensor gradient = ctx.temp(dy.shape(), "dy");
          ctx.ops.copy(gradient, dy);
          layer.backward(ctx, std::move(gradient));
        };
        device->ops().dry = true;
        arena.record();
        step();
        device->ops().dry = false;
        arena.plan();
        Buffer temporaries(memory, arena.peak_by_purpose());
        arena.attach(temporaries.data());
        const double merged = least(seconds, [&] {
          arena.rewind();
          step();
        });
        const double contracted = least(seconds, [&] {
          per_id.forward(ids);
          per_id.backward(ids, dy.data<float>());
        });
        const double looked_up = least(seconds, [&] {
          device->ops().gather_rows(taken, dense, id, false);
          device->ops().run(op::ScatterDistinctRows{drows, place, dy, id, rows});
        });
        check_same(per_id, y);
        std::printf(
            "{\"table\": \"%s\", \"rows\": %ld, \"width\": %ld, \"ids\": %ld, \"draw\": \"%s\", \"merged_ms\": %.2f, \"per_id_ms\": %.2f, "
            "\"dense_ms\": %.2f, \"merged_bytes\": %ld, \"per_id_bytes\": %ld}\n",
            name, static_cast<long>(rows), static_cast<long>(width), static_cast<long>(count), zipf ? "zipf" : "uniform", merged,
            contracted, looked_up, static_cast<long>(arena.peak_bytes()), static_cast<long>(per_id.kept_bytes(count)));
        std::fflush(stdout);
      }
  }

  // Both compute the same rows.
  void check_same(const PerId& per_id, const Tensor& y) const {
    double largest = 0, difference = 0;
    for (int64_t i = 0; i < y.count(); ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(y.data<float>()[i])));
      difference = std::max(difference, std::fabs(static_cast<double>(y.data<float>()[i] - per_id.y()[i])));
    }
    CHECK(difference <= 1e-4 * largest, "rows differ by " << difference << " of " << largest);
  }
};

}  // namespace

int main(int argc, char** argv) {
  Bench bench{argc > 1 ? std::atoi(argv[1]) : 2, argc > 2 ? std::atof(argv[2]) : 2.0};
  bench.scalars.pruning = 0;
  // The token table of the published encoder, and the largest table of Criteo's display ads.
  bench.table("tokens", 30522, 768, {.in_modes = {16, 20, 10, 10}, .out_modes = {4, 4, 8, 6}, .rank = 30});
  bench.table("criteo", 10131227, 16, {.rank = 32, .cores = 4});
  return 0;
}
