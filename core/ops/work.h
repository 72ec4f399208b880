// Work of ops, as a dry run counts it.
#pragma once

namespace comera {

struct Work {
  double gemm_flops = 0;   // 2 a multiply-add
  double gemm_bytes = 0;   // read + written by products: A, B and C once each, C twice where it is added to
  double other_bytes = 0;  // read + written by everything that is not a GEMM
  Work& operator+=(const Work& more) {
    gemm_flops += more.gemm_flops;
    gemm_bytes += more.gemm_bytes;
    other_bytes += more.other_bytes;
    return *this;
  }
};

}  // namespace comera
