// The part of cuBLASLt that gpu/gemm.cu uses, on the GPU in software: what it is told of a product is checked against the
// library's documented rules, and the product is computed in the stream. The program finds these in itself, since dlopen of
// the library gives it here.
#include <cublasLt.h>
#include <dlfcn.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/cpu/blas.h"
#include "core/ops/small_floats.h"
#include "tests/gpu/ptx/nccl.h"
#include "tests/gpu/ptx/runtime.h"

namespace {

struct Desc : cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* vector = nullptr;
  const float *scale_a = nullptr, *scale_b = nullptr;
};
struct Layout : cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type;
  int64_t rows, columns, ld;
};
struct Preference : cublasLtMatmulPreferenceOpaque_t {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};
// In an algorithm's own words.
struct Algorithm {
  uint64_t known, workspace, index;
  uint32_t alignment[4];
  uint32_t vector_alignment;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));
constexpr uint64_t kKnown = 0x616c676f;
constexpr int kAlgorithms = 2;  // that the heuristic knows for every product

// COMERA_PTX_REFUSE, words of: `first`, the best algorithm of every product; `fp32`, `tf32`, `bf16`, `fp8`, all of that
// precision; `fp8-heuristic`, for which the heuristic finds none.
bool refuses(std::string_view word) {
  const char* words = std::getenv("COMERA_PTX_REFUSE");
  for (std::istringstream text(words ? words : ""); !text.eof();) {
    std::string one;
    text >> one;
    if (one == word) return true;
  }
  return false;
}

cublasStatus_t refused(const char* why) {
  std::fprintf(stderr, "GPU in software: a product that cuBLASLt does not make: %s\n", why);
  return CUBLAS_STATUS_INVALID_VALUE;
}

template <class T>
cublasStatus_t copy_to(T& field, const void* value, size_t bytes) {
  if (bytes != sizeof field) return refused("an attribute of another size");
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

int64_t bytes_of(cudaDataType_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 1; }
uint32_t alignment_of(const void* data) {
  const auto address = std::bit_cast<uintptr_t>(data);
  return address == 0 ? 256 : static_cast<uint32_t>(std::min<uintptr_t>(address & (~address + 1), 256));
}

// The shape of the product, or what is wrong with it.
struct Shape {
  int64_t m, n, k;
};
const char* shape_of(const Desc& desc, const Layout& a, const Layout& b, const Layout& c, Shape& shape) {
  for (const Layout* matrix : {&a, &b, &c})
    if (matrix->ld < matrix->rows || matrix->rows < 1 || matrix->columns < 1) return "columns that lie closer than they are long";
  const bool ta = desc.a == CUBLAS_OP_T, tb = desc.b == CUBLAS_OP_T;
  shape = {ta ? a.columns : a.rows, tb ? b.rows : b.columns, ta ? a.rows : a.columns};
  if ((tb ? b.columns : b.rows) != shape.k || c.rows != shape.m || c.columns != shape.n) return "shapes that do not fit";
  if (desc.compute == CUBLAS_COMPUTE_64F ? desc.scale != CUDA_R_64F || c.type != CUDA_R_64F || a.type != CUDA_R_64F
                                         : desc.scale != CUDA_R_32F || c.type != CUDA_R_32F)
    return "types that do not go together";
  if (a.type == CUDA_R_8F_E4M3) {
    if (b.type != a.type || desc.compute != CUBLAS_COMPUTE_32F || !ta || tb) return "8 bits, and not A transposed and B as it is in fp32";
    if (shape.m % 16 || shape.n % 16 || shape.k % 16 || a.ld % 16 || b.ld % 16) return "8 bits, and sides that are no multiples of 16";
    if (!desc.scale_a || !desc.scale_b) return "8 bits without scales";
  } else if (a.type != c.type || b.type != c.type) {
    return "types that do not go together";
  }
  if (desc.epilogue != CUBLASLT_EPILOGUE_DEFAULT && (!desc.vector || c.type != CUDA_R_32F)) return "an epilogue without a vector";
  return nullptr;
}

float rounded(float x, cublasComputeType_t compute) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7f800000) == 0x7f800000) return x;
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return std::bit_cast<float>((bits + 0x0fff + (bits >> 13 & 1)) & ~uint32_t{0x1fff});
  if (compute == CUBLAS_COMPUTE_32F_FAST_16BF) return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & ~uint32_t{0xffff});
  return x;
}

// op(matrix) by rows x columns as T, `turned` to lie the other way round.
template <class T>
std::vector<T> copy_of(const void* data, const Layout& layout, int64_t rows, int64_t columns, bool turned, cublasComputeType_t compute) {
  std::vector<T> copy(static_cast<size_t>(rows * columns));
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t from = turned ? row * layout.ld + column : column * layout.ld + row;
      T& to = copy[static_cast<size_t>(column * rows + row)];
      if (layout.type == CUDA_R_8F_E4M3)
        to = static_cast<T>(comera::from_e4m3(static_cast<const uint8_t*>(data)[from]));
      else if constexpr (sizeof(T) == 4)
        to = rounded(static_cast<const T*>(data)[from], compute);
      else
        to = static_cast<const T*>(data)[from];
    }
  return copy;
}

template <class T>
void multiply(const Desc& desc, const Layout& a, const Layout& b, const Layout& d, Shape s, T alpha, const void* a_data, const void* b_data,
              T beta, void* d_data) {
  const std::vector<T> left = copy_of<T>(a_data, a, s.m, s.k, desc.a == CUBLAS_OP_T, desc.compute);
  const std::vector<T> right = copy_of<T>(b_data, b, s.k, s.n, desc.b == CUBLAS_OP_T, desc.compute);
  T scale = 1;
  if (desc.scale_a) scale = static_cast<T>(*desc.scale_a * *desc.scale_b);
  std::vector<T> sums(static_cast<size_t>(s.m * s.n));  // (n, m) by rows
  comera::blas::gemm(false, false, s.n, s.m, s.k, T{1}, right.data(), s.k, left.data(), s.m, T{0}, sums.data(), s.m);
  for (int64_t column = 0; column < s.n; ++column) {
    const T* sum = sums.data() + column * s.m;
    T* out = static_cast<T*>(d_data) + column * d.ld;
    for (int64_t row = 0; row < s.m; ++row) {
      const T before = beta == T{0} ? T{0} : beta * out[row];
      const T bias = desc.epilogue == CUBLASLT_EPILOGUE_BIAS ? static_cast<const T*>(desc.vector)[row] : T{0};
      out[row] = alpha * scale * sum[row] + before + bias;
    }
    if (desc.epilogue == CUBLASLT_EPILOGUE_BGRADB)
      static_cast<T*>(desc.vector)[column] = std::accumulate(right.begin() + column * s.k, right.begin() + (column + 1) * s.k, T{0});
  }
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
         : status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                 : "CUBLAS_STATUS_INVALID_VALUE";
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType_t scale) {
  auto* desc = new Desc;
  desc->compute = compute, desc->scale = scale;
  *made = desc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete static_cast<Desc*>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t name, const void* value,
                                              size_t bytes) {
  Desc& desc = *static_cast<Desc*>(of);
  const auto set = [&](auto& field) { return copy_to(field, value, bytes); };
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(desc.a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(desc.b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(desc.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(desc.vector);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return set(desc.scale_a);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return set(desc.scale_b);
    default:
      return refused("an attribute that is not known here");
  }
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType_t type, uint64_t rows, uint64_t columns, int64_t ld) {
  auto* layout = new Layout;
  layout->type = type, layout->rows = static_cast<int64_t>(rows), layout->columns = static_cast<int64_t>(columns), layout->ld = ld;
  *made = layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete static_cast<Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new Preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete static_cast<Preference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t of, cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, size_t bytes) {
  Preference& preference = *static_cast<Preference*>(of);
  const auto set = [&](auto& field) { return copy_to(field, value, bytes); };
  switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(preference.workspace);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(preference.alignment[0]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(preference.alignment[1]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(preference.alignment[2]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(preference.alignment[3]);
    default:
      return refused("a preference that is not known here");
  }
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t of, int most, cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  *found = 0;
  Shape shape;
  const Preference& preference = *static_cast<Preference*>(of);
  if (c != d) return refused("C and D that are not one");
  const Layout &la = *static_cast<Layout*>(a), &lb = *static_cast<Layout*>(b), &lc = *static_cast<Layout*>(c);
  if (const char* why = shape_of(*static_cast<Desc*>(desc), la, lb, lc, shape)) return refused(why);
  // As the library has it: 8 bits want operands and results at multiples of 16 bytes.
  if (la.type == CUDA_R_8F_E4M3 && refuses("fp8-heuristic")) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (la.type == CUDA_R_8F_E4M3)
    for (const uint32_t alignment : preference.alignment)
      if (alignment < 16) return CUBLAS_STATUS_NOT_SUPPORTED;
  // As it may have it.
  if (static_cast<Desc*>(desc)->compute == CUBLAS_COMPUTE_32F_FAST_16BF && (la.ld % 8 != 0 || lb.ld % 8 != 0))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  // Some products want room for partial sums, others none.
  const uint64_t workspace = shape.k >= 256 ? std::min<uint64_t>(preference.workspace, static_cast<uint64_t>(shape.m * shape.n * 4)) : 0;
  Algorithm algorithm{kKnown, workspace, 0, {}, alignment_of(static_cast<Desc*>(desc)->vector)};
  std::memcpy(algorithm.alignment, preference.alignment, sizeof algorithm.alignment);
  for (; *found < std::min(most, kAlgorithms); ++*found, ++algorithm.index) {
    cublasLtMatmulHeuristicResult_t& result = results[*found];
    std::memcpy(&result.algo, &algorithm, sizeof algorithm);
    result.state = CUBLAS_STATUS_SUCCESS;
    result.workspaceSize = workspace;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc_in, const void* alpha, const void* a, cublasLtMatrixLayout_t a_in,
                              const void* b, cublasLtMatrixLayout_t b_in, const void* beta, const void* c, cublasLtMatrixLayout_t c_in,
                              void* d, cublasLtMatrixLayout_t d_in, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  const Desc desc = *static_cast<Desc*>(desc_in);
  const Layout la = *static_cast<Layout*>(a_in), lb = *static_cast<Layout*>(b_in), lc = *static_cast<Layout*>(c_in);
  Shape shape;
  if (const char* why = shape_of(desc, la, lb, lc, shape)) return refused(why);
  if (c != d || c_in != d_in) return refused("C and D that are not one");
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (algorithm.known != kKnown || algorithm.workspace > workspace_bytes) return refused("an algorithm that was not asked for");
  const char* precision = la.type == CUDA_R_8F_E4M3                      ? "fp8"
                          : desc.compute == CUBLAS_COMPUTE_32F_FAST_16BF ? "bf16"
                          : desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? "tf32"
                                                                         : "fp32";
  if (refuses(precision) || (algorithm.index == 0 && refuses("first"))) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (workspace_bytes > 0 && !comera::ptx::is_device_memory(workspace, static_cast<int64_t>(workspace_bytes)))
    return refused("no workspace");
  const void* matrices[3] = {a, b, c};
  for (int i = 0; i < 3; ++i)
    if (alignment_of(matrices[i]) < algorithm.alignment[i])
      return refused("a matrix that is aligned to less than the algorithm was asked for");
  if (alignment_of(desc.vector) < algorithm.vector_alignment)
    return refused("a vector that is aligned to less than the algorithm was asked for");
  const Layout* layouts[3] = {&la, &lb, &lc};
  for (int i = 0; i < 3; ++i)
    if (!comera::ptx::is_device_memory(matrices[i],
                                       ((layouts[i]->columns - 1) * layouts[i]->ld + layouts[i]->rows) * bytes_of(layouts[i]->type)))
      return refused("a matrix that is not in the device's memory");
  const auto give = [&](auto zero) {
    using T = decltype(zero);
    const T by = *static_cast<const T*>(alpha), keep = *static_cast<const T*>(beta);
    return comera::ptx::enqueue(stream, [=] { multiply<T>(desc, la, lb, lc, shape, by, a, b, keep, d); });
  };
  const cudaError_t error = desc.compute == CUBLAS_COMPUTE_64F ? give(0.0) : give(0.0f);
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

// In the place of the C library's: cuBLASLt and NCCL are this program, the latter where a test wants it.
void* dlopen(const char* name, int flags) {
  static const auto real = reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  const auto is = [name](const char* part) { return name && std::strstr(name, part); };
  if (is("libnccl") && !comera_nccl_double()->here) return nullptr;
  return real(is("cublasLt") || is("libnccl") ? nullptr : name, flags);
}

}  // extern "C"
