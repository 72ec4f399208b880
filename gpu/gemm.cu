// cuBLASLt behind CudaMachine::gemm. fp32 is true fp32. For TF32 and bf16 the library rounds f32 operands by itself; E4M3
// operands come from fp8.h.
#include <dlfcn.h>

#include <array>

#include "gpu/cublas_lt.h"
#include "gpu/cuda_machine.h"

namespace comera::gpu {

struct CublasLt::Functions {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetStatusString) status_text;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
};

namespace {

void* open_library() {
  // The path at build time, else the system's search path.
  for (const char* name : {COMERA_CUBLASLT_FILE, COMERA_CUBLASLT_NAME})
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  const char* why = dlerror();
  throw Error(ErrorCode::device, "cuBLASLt could not be loaded", why ? why : "unknown reason",
              "install the CUDA toolkit's cuBLAS, or use --device cpu");
}

template <class F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (!function)
    throw Error(ErrorCode::device, "cuBLASLt has no function " + std::string(name), "it is of another version", "use --device cpu");
}

// Largest power of two up to 16 bytes, a wide load, that divides the address. No more is claimed, since the choice of an
// algorithm, and with it bits, must not depend on where memory happened to lie: arenas promise 64 bytes, offsets in them less.
uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  uint32_t alignment = 16;
  while (address % alignment != 0) alignment /= 2;
  return alignment;
}

// The epilogue: a bias for each row of C, or the sums of op(B) over k. The library's GELU is the tanh form, not the exact one, so
// activations are kernels of their own.
template <class T>
struct Hanging {
  explicit Hanging(const ColumnGemm<T>& p)
      : what(p.bias   ? CUBLASLT_EPILOGUE_BIAS
             : p.sums ? CUBLASLT_EPILOGUE_BGRADB
                      : CUBLASLT_EPILOGUE_DEFAULT),
        vector(p.bias ? p.bias : p.sums) {}
  cublasLtEpilogue_t what;
  const T* vector;
};

template <class T>
constexpr cudaDataType_t kType = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;
template <class T>
cublasComputeType_t compute_type(Products how) {
  if (sizeof(T) == 8) return CUBLAS_COMPUTE_64F;
  if (how == Products::fp32) return CUBLAS_COMPUTE_32F;
  return how == Products::bf16 ? CUBLAS_COMPUTE_32F_FAST_16BF : CUBLAS_COMPUTE_32F_FAST_TF32;
}

// The precision with more bits that is tried where the library has no kernel for `how`.
Products finer(Products how) { return how == Products::bf16 ? Products::tf32 : Products::fp32; }

}  // namespace

CublasLt::CublasLt(int64_t most_workspace) : most_workspace_(most_workspace), library_(open_library()), lt_(std::make_unique<Functions>()) {
  find(library_, "cublasLtCreate", lt_->create);
  find(library_, "cublasLtGetVersion", lt_->version);
  find(library_, "cublasLtDestroy", lt_->destroy);
  find(library_, "cublasLtGetStatusString", lt_->status_text);
  find(library_, "cublasLtMatmul", lt_->matmul);
  find(library_, "cublasLtMatmulDescCreate", lt_->desc_create);
  find(library_, "cublasLtMatmulDescDestroy", lt_->desc_destroy);
  find(library_, "cublasLtMatmulDescSetAttribute", lt_->desc_set);
  find(library_, "cublasLtMatrixLayoutCreate", lt_->layout_create);
  find(library_, "cublasLtMatrixLayoutDestroy", lt_->layout_destroy);
  find(library_, "cublasLtMatmulPreferenceCreate", lt_->preference_create);
  find(library_, "cublasLtMatmulPreferenceDestroy", lt_->preference_destroy);
  find(library_, "cublasLtMatmulPreferenceSetAttribute", lt_->preference_set);
  find(library_, "cublasLtMatmulAlgoGetHeuristic", lt_->heuristic);
  check(lt_->create(&handle_), "opening cuBLASLt");
}

// No dlclose: the library has threads and handlers of its own.
CublasLt::~CublasLt() {
  forget();
  lt_->destroy(handle_);
}

std::string CublasLt::version() const { return "cuBLASLt " + std::to_string(lt_->version()); }

void CublasLt::forget() {
  for (auto& [key, plan] : plans_) destroy(plan);
  for (auto& [key, plan] : fp8_plans_) destroy(plan);
  plans_.clear();
  fp8_plans_.clear();
}

int64_t CublasLt::Plan::workspace() const {
  size_t most = 0;
  for (size_t i = 0; i < count; ++i) most = std::max(most, algorithms[i].workspaceSize);
  return static_cast<int64_t>(most);
}

void CublasLt::destroy(Plan& plan) const {
  lt_->layout_destroy(plan.a);
  lt_->layout_destroy(plan.b);
  lt_->layout_destroy(plan.c);
  lt_->desc_destroy(plan.desc);
}

void CublasLt::check(cublasStatus_t status, const std::string& what) const {
  if (status == CUBLAS_STATUS_ALLOC_FAILED) out_of_memory(what);
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(ErrorCode::device, what + " failed on the CUDA device", lt_->status_text(status), "use --device cpu and report it");
}

cublasStatus_t CublasLt::choose(Plan& plan, const std::array<uint32_t, 3>& alignment, const std::string& what) const {
  cublasLtMatmulPreference_t preference = nullptr;
  check(lt_->preference_create(&preference), what);
  const size_t workspace = static_cast<size_t>(most_workspace_);
  cublasStatus_t status = lt_->preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
  const cublasLtMatmulPreferenceAttributes_t names[4] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (size_t i = 0; i < 4 && status == CUBLAS_STATUS_SUCCESS; ++i)
    status = lt_->preference_set(preference, names[i], &alignment[std::min<size_t>(i, 2)], sizeof(uint32_t));
  std::array<cublasLtMatmulHeuristicResult_t, Plan::kMostAlgorithms> results{};
  int found = 0;
  if (status == CUBLAS_STATUS_SUCCESS)
    status = lt_->heuristic(handle_, plan.desc, plan.a, plan.b, plan.c, plan.c, preference, Plan::kMostAlgorithms, results.data(), &found);
  lt_->preference_destroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  for (int i = 0; i < found; ++i)
    if (const auto& result = results[static_cast<size_t>(i)]; result.state == CUBLAS_STATUS_SUCCESS) plan.algorithms[plan.count++] = result;
  return plan.possible() ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

// The library may refuse an algorithm that its heuristic returned: then the next one is tried, and kept.
template <class T>
cublasStatus_t CublasLt::run(const Plan& plan, const T& alpha, const void* a, const void* b, const T& beta, void* c, cudaStream_t stream,
                             const Room& room) const {
  for (; plan.possible(); ++plan.next) {
    const cublasLtMatmulHeuristicResult_t& algorithm = plan.algorithms[plan.next];
    const cublasStatus_t status =
        lt_->matmul(handle_, plan.desc, &alpha, a, plan.a, b, plan.b, &beta, c, plan.c, c, plan.c, &algorithm.algo,
                    room(static_cast<int64_t>(algorithm.workspaceSize)), algorithm.workspaceSize, stream);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) return status;
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

template <class T>
const CublasLt::Plan& CublasLt::plan_of(const ColumnGemm<T>& p, Products how, const std::string& what) {
  const Hanging<T> hanging(p);
  const std::array<uint32_t, 3> alignment{alignment_of(p.a), alignment_of(p.b), alignment_of(p.c)};
  const Key key{sizeof(T) == 8, how,          p.m,          p.n,          p.k,
                p.ta,           p.tb,         p.lda,        p.ldb,        p.ldc,
                p.beta == T(0), alignment[0], alignment[1], alignment[2], alignment_of(hanging.vector),
                hanging.what};
  const bool exact = sizeof(T) == 8 || how == Products::fp32;
  // A shape without a kernel of this precision takes the next more exact one.
  const auto possible = [&](const Plan& plan) -> const Plan& {
    if (plan.possible() || hanging.vector) return plan;
    if (exact) check(CUBLAS_STATUS_NOT_SUPPORTED, what);
    return plan_of(p, finer(how), what);
  };
  if (const auto found = plans_.find(key); found != plans_.end()) return possible(found->second);

  Plan plan;
  const cublasOperation_t ops[2] = {p.ta ? CUBLAS_OP_T : CUBLAS_OP_N, p.tb ? CUBLAS_OP_T : CUBLAS_OP_N};
  const auto sides = [](int64_t rows, int64_t columns, bool turned) {
    return std::pair{static_cast<uint64_t>(turned ? columns : rows), static_cast<uint64_t>(turned ? rows : columns)};
  };
  const auto [a_rows, a_columns] = sides(p.m, p.k, p.ta);
  const auto [b_rows, b_columns] = sides(p.k, p.n, p.tb);
  check(lt_->desc_create(&plan.desc, compute_type<T>(how), kType<T>), what);
  check(lt_->desc_set(plan.desc, CUBLASLT_MATMUL_DESC_TRANSA, &ops[0], sizeof ops[0]), what);
  check(lt_->desc_set(plan.desc, CUBLASLT_MATMUL_DESC_TRANSB, &ops[1], sizeof ops[1]), what);
  if (hanging.vector) {
    // The choice below may depend on the alignment of the vector; multiply() sets the vector itself.
    const auto like_vector = reinterpret_cast<const T*>(uintptr_t{alignment_of(hanging.vector)});
    check(lt_->desc_set(plan.desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &hanging.what, sizeof hanging.what), what);
    check(lt_->desc_set(plan.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &like_vector, sizeof like_vector), what);
  }
  check(lt_->layout_create(&plan.a, kType<T>, a_rows, a_columns, p.lda), what);
  check(lt_->layout_create(&plan.b, kType<T>, b_rows, b_columns, p.ldb), what);
  check(lt_->layout_create(&plan.c, kType<T>, static_cast<uint64_t>(p.m), static_cast<uint64_t>(p.n), p.ldc), what);

  const cublasStatus_t status = choose(plan, alignment, what);
  if (status == CUBLAS_STATUS_ALLOC_FAILED) check(status, what);
  const bool another_way = hanging.vector || (!exact && status == CUBLAS_STATUS_NOT_SUPPORTED);
  if (!another_way) check(status, what);
  return possible(plans_.emplace(key, plan).first->second);  // after the checks: a failed plan is not kept
}

template <class T>
bool CublasLt::multiply(const ColumnGemm<T>& p, Products how, cudaStream_t stream, const Room& room, const std::string& what) {
  const Hanging<T> hanging(p);
  for (;;) {
    const Plan& plan = plan_of(p, how, what);  // throws if no precision is left to try
    if (hanging.vector) check(lt_->desc_set(plan.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &hanging.vector, sizeof hanging.vector), what);
    const cublasStatus_t status = run(plan, p.alpha, p.a, p.b, p.beta, p.c, stream, room);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) {
      check(status, what);
      return true;
    }
    if (hanging.vector) return false;
  }
}

template <class T>
int64_t CublasLt::workspace_of(const ColumnGemm<T>& p, Products how, const std::string& what) {
  const Plan& plan = plan_of(p, how, what);
  // The library may refuse a product later: then the next finer precision is used, so its workspace counts too.
  const bool last = sizeof(T) == 8 || how == Products::fp32 || p.bias || p.sums;
  return std::max(plan.workspace(), last ? 0 : workspace_of(p, finer(how), what));
}

// cuBLASLt's 8-bit GEMM needs A transposed and B not.
const CublasLt::Plan& CublasLt::plan_of(const Fp8Gemm& p, const std::string& what) {
  const Fp8Key key{p.m, p.n, p.k, p.ldc, p.beta == 0, alignment_of(p.c)};
  if (const auto found = fp8_plans_.find(key); found != fp8_plans_.end()) return found->second;
  Plan plan;
  const cublasOperation_t transposed = CUBLAS_OP_T;
  check(lt_->desc_create(&plan.desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), what);
  check(lt_->desc_set(plan.desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed), what);
  check(lt_->desc_set(plan.desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &p.scale_a, sizeof p.scale_a), what);
  check(lt_->desc_set(plan.desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &p.scale_b, sizeof p.scale_b), what);
  const auto sides = [](int64_t size) { return static_cast<uint64_t>(size); };
  check(lt_->layout_create(&plan.a, CUDA_R_8F_E4M3, sides(p.k), sides(p.m), p.k), what);
  check(lt_->layout_create(&plan.b, CUDA_R_8F_E4M3, sides(p.k), sides(p.n), p.k), what);
  check(lt_->layout_create(&plan.c, CUDA_R_32F, sides(p.m), sides(p.n), p.ldc), what);
  const cublasStatus_t status = choose(plan, {alignment_of(p.a), alignment_of(p.b), alignment_of(p.c)}, what);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status, what);
  return fp8_plans_.emplace(key, plan).first->second;
}

bool CublasLt::multiply(const Fp8Gemm& p, cudaStream_t stream, const Room& room, const std::string& what) {
  const Plan& plan = plan_of(p, what);
  if (!plan.possible()) return false;
  check(lt_->desc_set(plan.desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &p.scale_a, sizeof p.scale_a), what);
  check(lt_->desc_set(plan.desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &p.scale_b, sizeof p.scale_b), what);
  const cublasStatus_t status = run(plan, p.alpha, p.a, p.b, p.beta, p.c, stream, room);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  check(status, what);
  return true;
}

int64_t CublasLt::workspace_of(const Fp8Gemm& p, const std::string& what) { return plan_of(p, what).workspace(); }

std::string CudaMachine::blas() const { return cublas_->version(); }

template <class T>
void CudaMachine::gemm(const ColumnGemm<T>& product) {
  if (dry_)
    scratch_.note(cublas_->workspace_of(product, products(), now()));
  else
    cublas_->multiply(
        product, products_, stream_, [this](int64_t bytes) { return product_workspace(bytes); }, now());
}
template void CudaMachine::gemm(const ColumnGemm<float>&);
template void CudaMachine::gemm(const ColumnGemm<double>&);

bool CudaMachine::gemm(const Fp8Gemm& product) {
  if (dry_) {
    scratch_.note(cublas_->workspace_of(product, now()));
    return false;  // its replacement is planned, too
  }
  return cublas_->multiply(
      product, stream_, [this](int64_t bytes) { return product_workspace(bytes); }, now());
}

// f64 is for tests: separate passes are good enough.
template <class T>
bool CudaMachine::gemm_and(const ColumnGemm<T>& product) {
  if (sizeof(T) == 8) return false;
  if (dry_) {
    scratch_.note(cublas_->workspace_of(product, products(), now()));
    return false;  // its replacement is planned, too
  }
  return cublas_->multiply(
      product, products_, stream_, [this](int64_t bytes) { return product_workspace(bytes); }, now());
}
template bool CudaMachine::gemm_and(const ColumnGemm<float>&);
template bool CudaMachine::gemm_and(const ColumnGemm<double>&);

}  // namespace comera::gpu
