// Record, plan, replay of one program's temporaries (core/README.md, "Memory before step 1").
//   record: the program runs once dry; each request and each last-handle drop is noted.
//   plan:   blocks get offsets, largest first into the lowest gap that is free for their whole life.
//   replay: the k-th request returns the k-th block; another size or tag throws. Addresses are equal every step,
//           and a steady step allocates nothing.
// One thread: the trainer's. An arena must outlive every tensor that it lent.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/rounding.h"
#include "core/tensor/memory.h"

namespace comera {

class Arena;

// A counted claim on one block of an arena.
class Lease {
 public:
  Lease() = default;
  Lease(Arena* arena, int64_t block);
  Lease(const Lease& other);
  Lease(Lease&& other) noexcept : arena_(other.arena_), block_(other.block_) { other.arena_ = nullptr; }
  Lease& operator=(Lease other) noexcept;
  ~Lease();

  explicit operator bool() const { return arena_ != nullptr; }
  const Arena* arena() const { return arena_; }
  int64_t block() const { return block_; }
  bool is_only() const;  // the one handle on its block

 private:
  Arena* arena_ = nullptr;
  int64_t block_ = 0;
};

class Arena {
 public:
  static constexpr int64_t kAlignment = 64;
  static constexpr int64_t aligned(int64_t bytes) { return round_up(bytes, kAlignment); }

  struct Block {  // for the memory view: what lived when, and where
    int64_t bytes = 0, offset = 0;
    int64_t born = 0, died = -1;  // in events (requests, drops and marks) since the program began
    const char* tag = "";
  };

  Arena() = default;
  Arena(const Arena&) = delete;

  // Forgets the plan; the requests that follow are recorded and have no address.
  void record();
  // Ends recording and places the blocks. Nothing is allocated: peak_bytes() can be shown first.
  void plan();
  // Where the blocks will lie: at least peak_bytes(), 64-byte aligned. Programs that never run at the same time
  // share one piece of memory, so the owner of the programs takes it, not the arena.
  void attach(void* base) { base_ = static_cast<char*>(base); }
  // Start of the program: the next request is the first one again.
  void rewind();

  bool recording() const { return recording_; }
  // Marks the turn from forward to backward: blocks alive across it are activations, all others workspace.
  void mark_turn();

  // The next block: its address (null while recording) and a lease. `tag` must be a literal; it names the block.
  void* take(int64_t bytes, const char* tag, Lease& lease);

  int64_t peak_bytes() const { return peak_bytes_; }
  MemoryByPurpose peak_by_purpose() const;  // activation and workspace; sums to peak_bytes()
  const std::vector<Block>& blocks() const { return blocks_; }
  int64_t turn() const { return turn_; }
  int64_t events() const { return event_; }  // of the whole program, once it is planned
  // Bytes that are alive over the events from..to (without it), as planned: the most in each of up to `parts` equal parts.
  std::vector<int64_t> alive(int64_t from, int64_t to, size_t parts) const;

 private:
  friend class Lease;
  void claim(int64_t block);
  void drop(int64_t block);

  char* base_ = nullptr;
  std::vector<Block> blocks_;
  std::vector<int32_t> handles_;  // live handles a block
  int64_t next_ = 0, event_ = 0, turn_ = -1, peak_bytes_ = 0;
  bool recording_ = false;
};

}  // namespace comera
