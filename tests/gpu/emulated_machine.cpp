#include "tests/gpu/emulated_machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <numeric>

#include "core/cpu/blas.h"
#include "core/ops/small_floats.h"

// Between two pieces of memory lies a gap that the address sanitizer knows.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#endif

namespace comera::test {
namespace {

[[maybe_unused]] const bool one_thread = (blas::set_one_thread(), true);

// What cublasSgemm and cublasDgemm do.
CBLAS_TRANSPOSE flag(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }
void gemm_by_columns(const gpu::ColumnGemm<float>& p) {
  COMERA_BLAS(cblas_sgemm)
  (CblasColMajor, flag(p.ta), flag(p.tb), static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), p.alpha, p.a,
   static_cast<int>(p.lda), p.b, static_cast<int>(p.ldb), p.beta, p.c, static_cast<int>(p.ldc));
}
void gemm_by_columns(const gpu::ColumnGemm<double>& p) {
  COMERA_BLAS(cblas_dgemm)
  (CblasColMajor, flag(p.ta), flag(p.tb), static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), p.alpha, p.a,
   static_cast<int>(p.lda), p.b, static_cast<int>(p.ldb), p.beta, p.c, static_cast<int>(p.ldc));
}

}  // namespace

namespace {

constexpr size_t kRoom = size_t{4} << 30, kPage = 4096, kLine = 64;  // of the room only what is touched is taken

}  // namespace

EmulatedMemory::EmulatedMemory(bool closed) : closed_(closed) {
  void* room = mmap(nullptr, kRoom, closed ? PROT_NONE : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(room != MAP_FAILED, "no room for emulated device memory");
  base_ = static_cast<char*>(room);
}

EmulatedMemory::~EmulatedMemory() {
  ASAN_UNPOISON_MEMORY_REGION(base_, used_);
  munmap(base_, kRoom);
}

void EmulatedMemory::protect(bool on) {
  if (!closed_) return;
  const size_t bytes = (used_ + kPage - 1) / kPage * kPage;
  CHECK(bytes == 0 || mprotect(base_, bytes, on ? PROT_NONE : PROT_READ | PROT_WRITE) == 0, "emulated device memory");
}

void* EmulatedMemory::allocate(int64_t bytes) {
  const size_t size = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + 2 * kLine - 1) / kLine * kLine;  // and a gap
  void* data = nullptr;
  if (std::vector<void*>& again = released_[size]; !again.empty()) {
    data = again.back();
    again.pop_back();
  } else {
    CHECK(used_ + size <= kRoom, "emulated device memory is used up");
    data = base_ + used_;
    used_ += size;
    ASAN_POISON_MEMORY_REGION(data, size);
  }
  sizes_[data] = size;
  ASAN_UNPOISON_MEMORY_REGION(data, static_cast<size_t>(bytes));
  const Open open(*this);
  std::memset(data, 0xff, static_cast<size_t>(bytes));
  return data;
}

void EmulatedMemory::release(void* data) {
  const auto found = sizes_.find(data);
  released_[found->second].push_back(data);
  ASAN_POISON_MEMORY_REGION(data, found->second);
  sizes_.erase(found);
}

void EmulatedMachine::begin(const char* op, const Shape& shape) {
  op_ = op + (" " + shape.text());
  (dry_ ? planned_ : taken_).begin();
  if (dry_) return;
  for (void* data : scratch_) memory_.release(data);
  scratch_.clear();
  if (!lent_) return;
  const EmulatedMemory::Open open(memory_);
  ASAN_UNPOISON_MEMORY_REGION(lent_, static_cast<size_t>(lent_bytes_));
  std::memset(lent_, 0xff, static_cast<size_t>(lent_bytes_));
  ASAN_POISON_MEMORY_REGION(lent_, static_cast<size_t>(lent_bytes_));
}

void* EmulatedMachine::scratch_bytes(int64_t bytes) {
  const int64_t at = (dry_ ? planned_ : taken_).take(bytes);
  if (dry_) return gpu::Scratch::nowhere();
  if (lent_ && at + gpu::Scratch::size_of(bytes) <= lent_bytes_) {
    ASAN_UNPOISON_MEMORY_REGION(lent_ + at, static_cast<size_t>(bytes));
    return lent_ + at;
  }
  own_bytes += bytes;
  scratch_.push_back(memory_.allocate(bytes));
  return scratch_.back();
}

void EmulatedMachine::lend_workspace(void* data, int64_t bytes) {
  lent_ = static_cast<char*>(data);
  lent_bytes_ = bytes;
  taken_.forget();
}

void EmulatedMachine::end_loan(const void* data) {
  if (data == lent_) lent_ = nullptr;
}

void EmulatedMachine::move(void* to, const void* from, int64_t bytes) {
  check_alive();
  if (bytes == 0) return;
  const EmulatedMemory::Open open(memory_);
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

template <class T>
void EmulatedMachine::gemm(const gpu::ColumnGemm<T>& p) {
  if (dry_) return;
  const EmulatedMemory::Open open(memory_);
  gemm_by_columns(p);
}
template void EmulatedMachine::gemm(const gpu::ColumnGemm<float>&);
template void EmulatedMachine::gemm(const gpu::ColumnGemm<double>&);

// As cuBLASLt asks for it: sides of multiples of 16, addresses and lines of C aligned to 16 bytes.
bool EmulatedMachine::gemm(const gpu::Fp8Gemm& p) {
  constexpr int64_t kMultiple = gpu::Fp8Gemm::kMultiple;
  CHECK(p.m % kMultiple == 0 && p.n % kMultiple == 0 && p.k % kMultiple == 0 && p.ldc % 4 == 0,
        op_ << ": " << p.m << " x " << p.n << " x " << p.k << " in lines of " << p.ldc);
  if (dry_ || !shape_.fp8) return false;
  for (const void* at : {static_cast<const void*>(p.a), static_cast<const void*>(p.b), static_cast<const void*>(p.c)})
    CHECK(reinterpret_cast<uintptr_t>(at) % 16 == 0, op_ << ": a matrix of an 8-bit product is not aligned");
  ++fp8_products;
  const EmulatedMemory::Open open(memory_);
  const auto plain = [&](const uint8_t* codes, int64_t count, float scale) {
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = from_e4m3(codes[i]) * scale;
    return values;
  };
  const std::vector<float> a = plain(p.a, p.k * p.m, *p.scale_a), b = plain(p.b, p.k * p.n, *p.scale_b);
  gemm_by_columns(gpu::ColumnGemm<float>{p.m, p.n, p.k, true, false, p.alpha, a.data(), p.k, b.data(), p.k, p.beta, p.c, p.ldc});
  return true;
}

// As cuBLASLt describes its epilogues BIAS, a value for each row of C, and BGRADB, sums of op(B) over k for each column.
template <class T>
bool EmulatedMachine::gemm_and(const gpu::ColumnGemm<T>& p) {
  if (dry_ || !shape_.gemm_and) return false;
  CHECK(!p.bias != !p.sums, op_ << ": one vector hangs on a product");
  gemm(p);
  ++fused;
  const EmulatedMemory::Open open(memory_);
  for (int64_t j = 0; p.bias && j < p.n; ++j)
    for (int64_t i = 0; i < p.m; ++i) p.c[i + j * p.ldc] += p.bias[i];
  for (int64_t j = 0; p.sums && j < p.n; ++j) {
    p.sums[j] = 0;
    for (int64_t l = 0; l < p.k; ++l) p.sums[j] += p.tb ? p.b[j + l * p.ldb] : p.b[l + j * p.ldb];
  }
  return true;
}
template bool EmulatedMachine::gemm_and(const gpu::ColumnGemm<float>&);
template bool EmulatedMachine::gemm_and(const gpu::ColumnGemm<double>&);

void EmulatedMachine::sort(int* keys, int* order, const int* keys_in, const int* order_in, int64_t count, int bits) {
  const int64_t room = 8 * count;  // as the sort of a device wants some
  scratch_bytes(room);
  if (dry_) return;
  const EmulatedMemory::Open open(memory_);
  std::vector<int64_t> at(static_cast<size_t>(count));
  std::iota(at.begin(), at.end(), 0);
  for (int64_t i = 0; i < count; ++i)
    CHECK(keys_in[i] >= 0 && keys_in[i] >> bits == 0, op_ << ": key " << keys_in[i] << " of " << bits << " bits");
  std::stable_sort(at.begin(), at.end(), [&](int64_t a, int64_t b) { return keys_in[a] < keys_in[b]; });
  for (int64_t i = 0; i < count; ++i) {
    keys[i] = keys_in[at[static_cast<size_t>(i)]];
    order[i] = order_in[at[static_cast<size_t>(i)]];
  }
}

}  // namespace comera::test
