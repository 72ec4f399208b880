// Products in bf16 on a CPU (train.matmul=bf16), by a library that is opened when a run asks for them (core/cpu/onednn).
#pragma once
#include <cstdint>

namespace comera {

// C (m, n) = op(A) op(B), or C += that where `add`; op(A) (m, k), op(B) (k, n), transposed where the flag is set. Operands are bf16, sums
// and C f32, row-major with these row steps.
struct RoundedProduct {
  int64_t m, n, k;
  const uint16_t* a;
  int64_t lda;
  bool transpose_a;
  const uint16_t* b;
  int64_t ldb;
  bool transpose_b;
  float* c;
  int64_t ldc;
  bool add;
};

struct RoundedProducts {
  const char* name;     // library and instructions: another one may round differently
  const char* refusal;  // why this processor cannot, or null
  // On the calling thread. Null, or what failed; the text stays until the thread's next call.
  const char* (*multiply)(const RoundedProduct&);
};

// What the library exports: const RoundedProducts* comera_onednn().
inline constexpr const char* kOnednnFile = "libcomera_onednn.so";
inline constexpr const char* kOnednnSymbol = "comera_onednn";

const RoundedProducts& open_rounded_products();  // core/cpu/onednn.cpp; throws Error(device)

}  // namespace comera
