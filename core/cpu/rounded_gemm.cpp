#include "core/cpu/rounded_gemm.h"

#include <algorithm>
#include <atomic>

#include "core/base/rounding.h"
#include "core/cpu/skinny_gemm.h"
#include "core/cpu/typed.h"
#include "core/ops/small_floats.h"

namespace comera {
namespace {

// Rows and columns of C that are one call of the library, whatever the number of threads.
constexpr int64_t kRoundedTile = 256;

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

  const int64_t down = ceil_div(m, kRoundedTile), across = ceil_div(n, kRoundedTile);
  std::atomic<const char*> failed = nullptr;
  pool.parallel_for(down * across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t row = tile / across * kRoundedTile, column = tile % across * kRoundedTile;
      const RoundedProduct part{std::min(kRoundedTile, m - row),
                                std::min(kRoundedTile, n - column),
                                k,
                                of_a + row * (product.transpose_a ? 1 : a.cols),
                                a.cols,
                                product.transpose_a,
                                of_b + column * (product.transpose_b ? b.cols : 1),
                                b.cols,
                                product.transpose_b,
                                c.data<float>() + row * c.ld + column,
                                c.ld,
                                product.beta == 1};
      if (const char* why = how->multiply(part)) failed = why;
    }
  });
  if (const char* why = failed)
    throw Error(ErrorCode::device, "a product in bf16 failed", std::string(how->name) + ": " + why, "use train.matmul=fp32");
  return true;
}

}  // namespace comera
