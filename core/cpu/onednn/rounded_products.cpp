// Products in bf16 by oneDNN, each on the thread that calls it.
#include "core/ops/rounded_products.h"

#include <omp.h>

#include <dnnl.hpp>
#include <exception>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

namespace comera {
namespace {

using dnnl::memory;

static_assert(DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP || DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_SEQ,
              "oneDNN's threads are limited through OpenMP");

// The kernels that a thread has used, by shapes, row steps and flags.
class Multiplier {
 public:
  // The program splits products itself. A kernel made for one OpenMP thread runs on the calling thread, and its sums do not depend on the
  // number of cores.
  Multiplier() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) { omp_set_num_threads(1); }

  void run(const RoundedProduct& p) {
    const auto [at, is_new] = kernels_.try_emplace(Key{p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.transpose_a, p.transpose_b, p.add});
    if (is_new) {
      try {
        at->second = made(p);
      } catch (...) {
        kernels_.erase(at);
        throw;
      }
    }
    Kernel& kernel = at->second;
    kernel.a.set_data_handle(const_cast<uint16_t*>(p.a));
    kernel.b.set_data_handle(const_cast<uint16_t*>(p.b));
    kernel.c.set_data_handle(p.c);
    kernel.multiply.execute(stream_, kernel.arguments);
    stream_.wait();
  }

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool, bool, bool>;
  struct Kernel {
    dnnl::matmul multiply;
    memory a, b, c;
    std::unordered_map<int, memory> arguments;
  };

  Kernel made(const RoundedProduct& p) {
    const auto steps = [](int64_t ld, bool transposed) { return transposed ? memory::dims{1, ld} : memory::dims{ld, 1}; };
    const memory::desc a({p.m, p.k}, memory::data_type::bf16, steps(p.lda, p.transpose_a)),
        b({p.k, p.n}, memory::data_type::bf16, steps(p.ldb, p.transpose_b)), c({p.m, p.n}, memory::data_type::f32, steps(p.ldc, false));
    dnnl::primitive_attr how;
    if (p.add) {
      dnnl::post_ops sum;
      sum.append_sum(1);
      how.set_post_ops(sum);
    }
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc chosen(engine_, a, b, c, how);
#else
    const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(a, b, c), how, engine_);
#endif
    const memory of_a(a, engine_, nullptr), of_b(b, engine_, nullptr), of_c(c, engine_, nullptr);
    return {dnnl::matmul(chosen), of_a, of_b, of_c, {{DNNL_ARG_SRC, of_a}, {DNNL_ARG_WEIGHTS, of_b}, {DNNL_ARG_DST, of_c}}};
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::map<Key, Kernel> kernels_;
};

const char* multiply(const RoundedProduct& p) {
  thread_local std::string failed;
  try {
    thread_local Multiplier multiplier;
    multiplier.run(p);
    return nullptr;
  } catch (const std::exception& error) {
    failed = error.what();
    return failed.c_str();
  }
}

const char* instructions() {
  const auto has = [](dnnl::cpu_isa wanted) {
    return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  if (has(dnnl::cpu_isa::avx512_core_amx)) return "AMX";
  return has(dnnl::cpu_isa::avx512_core_bf16) ? "AVX512_BF16" : nullptr;
}

RoundedProducts products_here() {
  const dnnl_version_t* version = dnnl_version();
  const char* has = instructions();
  static const std::string kName = "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
                                   std::to_string(version->patch) + (has ? std::string(", ") + has : "");
  return {kName.c_str(), has ? nullptr : "here, but this processor has neither AVX512_BF16 nor AMX", multiply};
}

}  // namespace
}  // namespace comera

extern "C" const comera::RoundedProducts* comera_onednn();
extern "C" const comera::RoundedProducts* comera_onednn() {
  static const comera::RoundedProducts kProducts = comera::products_here();
  return &kProducts;
}
