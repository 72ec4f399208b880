// Every byte the core takes is taken here, with a purpose, so that the memory shown is the memory used.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace comera {

enum class Purpose : unsigned char {
  tt_core,       // tensor-train cores
  dense_weight,  // everything else that is trained: dense matrices, biases, norms, tables
  rank_vector,   // rank parameters
  gradient,
  optimizer,   // moments, projections
  activation,  // kept from forward for backward (inside the arena)
  workspace,   // temporaries of a step (inside the arena); working memory of a GPU's ops and libraries
  data,        // batch buffers, step blocks
};
inline constexpr int kPurposes = 8;
const char* name_of(Purpose purpose);  // "tt_core", ...

struct MemoryByPurpose {
  std::array<int64_t, kPurposes> bytes{};
  int64_t& operator[](Purpose purpose) { return bytes[static_cast<size_t>(purpose)]; }
  int64_t operator[](Purpose purpose) const { return bytes[static_cast<size_t>(purpose)]; }
  int64_t total() const {
    int64_t sum = 0;
    for (int64_t value : bytes) sum += value;
    return sum;
  }
};

// Memory that is missing where a plan replaces the memory held now.
struct LackOfRoom {
  int64_t need = 0, free = 0;  // bytes needed beyond the memory held, and bytes still free
  std::string text() const;    // "310.0 MiB more are needed, 190.0 MiB are free"
};
std::optional<LackOfRoom> lack_of_room(const MemoryByPurpose& planned, const MemoryByPurpose& held, int64_t available);

// Raw memory of a device. Thread: the trainer's.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(int64_t bytes) = 0;  // 64-byte aligned; throws Error(memory)
  virtual void release(void* data) noexcept = 0;
};

// The memory of one run: counts what is held and the peak. Must outlive its buffers.
class Memory {
 public:
  explicit Memory(Allocator& allocator) : allocator_(allocator) {}
  const MemoryByPurpose& now() const { return now_; }
  const MemoryByPurpose& peak() const { return peak_; }  // the moment of the largest total
  void reset_peak() { peak_ = now_; }

 private:
  friend class Buffer;
  Allocator& allocator_;
  MemoryByPurpose now_, peak_;
};

// Owns one block. Movable; frees on destruction.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Memory& memory, int64_t bytes, Purpose purpose);
  // One block that serves several purposes (the arena's): counted as `split` says, whose total is its size.
  Buffer(Memory& memory, const MemoryByPurpose& split);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();
  void* data() const { return data_; }
  int64_t bytes() const { return split_.total(); }

 private:
  void swap(Buffer& other) noexcept;
  Memory* memory_ = nullptr;
  void* data_ = nullptr;
  MemoryByPurpose split_;
};

}  // namespace comera
