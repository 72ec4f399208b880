#include "core/cpu/rounded_gemm.h"

#include <algorithm>
#include <atomic>

#include "core/base/rounding.h"
#include "core/cpu/skinny_gemm.h"
#include "core/cpu/typed.h"
#include "core/ops/small_floats.h"

namespace comera {
namespace {

// Rows or columns of C that are one call of the library, whatever the number of threads.
constexpr int64_t kRoundedPart = 256;

// Row after row, as `x` is stored.
void round_rows(ThreadPool& pool, uint16_t* to, const Mat& x) {
  const float* from = x.data<float>();
  const int64_t columns = x.cols;
  pool.parallel_for(x.rows, std::max<int64_t>(1, kElementGrain / std::max<int64_t>(columns, 1)),
                    [=, step = x.ld](int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        const float* in = from + row * step;
                        uint16_t* out = to + row * columns;
                        for (int64_t i = 0; i < columns; ++i) out[i] = bf16_of(in[i]);
                      }
                    });
}

}  // namespace

bool rounded_gemm(ThreadPool& pool, Workspace& workspace, bool dry, const RoundedProducts* how, const GemmArgs& product) {
  const Mat &a = product.a, &b = product.b, &c = product.c;
  const int64_t m = c.rows, n = c.cols, k = product.terms();
  if (c.tensor.dtype() != DType::f32 || std::min({m, n, k}) <= kSkinny) return false;
  if (product.alpha != 1 || (product.beta != 0 && product.beta != 1)) return false;
  Workspace::Call memory(workspace, dry);
  uint16_t *of_a = memory.take<uint16_t>(m * k), *of_b = memory.take<uint16_t>(k * n);
  if (dry) return true;
  round_rows(pool, of_a, a);
  round_rows(pool, of_b, b);

  const bool by_rows = m >= n;
  const int64_t side = by_rows ? m : n;
  std::atomic<const char*> failed = nullptr;
  pool.parallel_for(ceil_div(side, kRoundedPart), 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t first = part * kRoundedPart, count = std::min(kRoundedPart, side - first);
      RoundedProduct one{
          m, n, k, of_a, a.cols, product.transpose_a, of_b, b.cols, product.transpose_b, c.data<float>(), c.ld, product.beta == 1};
      if (by_rows) {
        one.m = count;
        one.a += first * (one.transpose_a ? 1 : one.lda);
        one.c += first * one.ldc;
      } else {
        one.n = count;
        one.b += first * (one.transpose_b ? one.ldb : 1);
        one.c += first;
      }
      if (const char* why = how->multiply(one)) failed = why;
    }
  });
  if (const char* why = failed)
    throw Error(ErrorCode::device, "a product in bf16 failed", std::string(how->name) + ": " + why, "use train.matmul=fp32");
  return true;
}

}  // namespace comera
