// Rates of products in bf16 (sums and results in f32) by Debian's oneDNN: two threads, each the parts of 256 rows or columns that are its
// own, as the program would call it for results that do not depend on the number of threads. Operands are rounded already.
//
//     g++ -O2 -std=c++20 -fopenmp experiments/bench/onednn.cpp -ldnnl -o build/onednn && build/onednn      # Debian: libdnnl-dev
#include <omp.h>
#include <dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

struct Product {
  const char* name;
  int64_t m, k, n;
  bool turned_a, turned_b;
};

int main() {
  using dnnl::memory;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const dnnl_version_t* version = dnnl_version();
  std::printf("oneDNN %d.%d.%d\n\n| product | m, k, n | us | GFLOP/s | kernel |\n|---|---|---|---|---|\n", version->major, version->minor,
              version->patch);
  for (const Product& p : {Product{"x L of a layer", 1024, 768, 30, false, false},
                           {"T1 R of a layer", 1024, 30, 768, false, false},
                           {"dL = x^T dT1", 768, 1024, 30, true, false},
                           {"dT1 L^T", 1024, 30, 768, false, true},
                           {"dense, attention", 1024, 768, 768, false, true},
                           {"dense, feed-forward", 1024, 768, 3072, false, true},
                           {"dense, gradient", 768, 1024, 768, true, false}}) {
    std::vector<uint16_t> a(static_cast<size_t>(p.m * p.k), 0x3f80), b(static_cast<size_t>(p.k * p.n), 0x3f80);
    std::vector<float> c(static_cast<size_t>(p.m * p.n));
    const char* kernel = "";
    const auto work = [&](int thread, int times) {
      omp_set_num_threads(1);
      dnnl::stream stream(engine);
      const bool by_rows = p.m >= p.n;
      const int64_t side = by_rows ? p.m : p.n, part = 256;
      for (int time = 0; time < times; ++time)
        for (int64_t first = thread * part; first < side; first += 2 * part) {
          const int64_t count = std::min(part, side - first), m = by_rows ? count : p.m, n = by_rows ? p.n : count;
          const memory::desc of_a({m, p.k}, memory::data_type::bf16, p.turned_a ? memory::dims{1, p.m} : memory::dims{p.k, 1});
          const memory::desc of_b({p.k, n}, memory::data_type::bf16, p.turned_b ? memory::dims{1, p.k} : memory::dims{p.n, 1});
          const memory::desc of_c({m, n}, memory::data_type::f32, memory::dims{p.n, 1});
          const dnnl::matmul::primitive_desc how(dnnl::matmul::desc(of_a, of_b, of_c), engine);
          if (thread == 0) kernel = how.impl_info_str();
          memory own_a(of_a, engine, a.data() + (by_rows ? first * (p.turned_a ? 1 : p.k) : 0));
          memory own_b(of_b, engine, b.data() + (by_rows ? 0 : first * (p.turned_b ? p.k : 1)));
          memory own_c(of_c, engine, c.data() + first * (by_rows ? p.n : 1));
          dnnl::matmul(how).execute(stream, {{DNNL_ARG_SRC, own_a}, {DNNL_ARG_WEIGHTS, own_b}, {DNNL_ARG_DST, own_c}});
          stream.wait();
        }
    };
    const auto both = [&](int times) {
      std::thread other(work, 1, times);
      work(0, times);
      other.join();
    };
    constexpr int kTimes = 50;
    both(2);
    const auto begin = std::chrono::steady_clock::now();
    both(kTimes);
    const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / kTimes;
    const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.k) * static_cast<double>(p.n);
    std::printf("| %s | %ld, %ld, %ld | %.0f | %.0f | %s |\n", p.name, p.m, p.k, p.n, us, flops / us / 1e3, kernel);
  }
}
