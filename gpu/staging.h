// Uploads that do not wait. Before it copies from pageable memory CUDA may wait for all work, so data is copied first into a
// ring of pinned parts. A part is overwritten once its last copy has arrived.
//
// A Lane has
//     char* memory()                       kParts * part_bytes of pinned memory
//     copy(to, from, bytes)                from there to the device, after all work issued so far; does not wait
//     mark(part), wait(part)               marks the copies so far; waits until they are done, not at all without a mark
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

namespace comera::gpu {

template <class Lane>
class Staging {
 public:
  static constexpr int kParts = 4;

  Staging(Lane& lane, int64_t part_bytes) : lane_(lane), part_bytes_(part_bytes) {}

  // `host` may change or be freed as soon as the call returns.
  void upload(void* device, const void* host, int64_t bytes) {
    for (int64_t done = 0; done < bytes;) {
      if (used_ == part_bytes_) turn();
      char* room = lane_.memory() + part_ * part_bytes_ + used_;
      const int64_t piece = std::min(bytes - done, part_bytes_ - used_);
      std::memcpy(room, static_cast<const char*>(host) + done, static_cast<size_t>(piece));
      lane_.copy(static_cast<char*>(device) + done, room, piece);
      done += piece;
      used_ += piece;
    }
  }
  // Parts of a block in one copy if they fit a part of the ring. A Part has at, host, bytes.
  template <class Parts>
  void upload_parts(void* block, const Parts& parts) {
    if (parts.empty()) return;
    const int64_t all = parts.back().at + parts.back().bytes - parts.front().at;
    if (all > part_bytes_) {
      for (const auto& part : parts) upload(static_cast<char*>(block) + part.at, part.host, part.bytes);
      return;
    }
    if (used_ + all > part_bytes_) turn();
    char* room = lane_.memory() + part_ * part_bytes_ + used_;
    for (const auto& part : parts) std::memcpy(room + part.at - parts.front().at, part.host, static_cast<size_t>(part.bytes));
    lane_.copy(static_cast<char*>(block) + parts.front().at, room, all);
    used_ += all;
  }

 private:
  void turn() {
    lane_.mark(part_);
    part_ = (part_ + 1) % kParts;
    used_ = 0;
    lane_.wait(part_);
  }

  Lane& lane_;
  const int64_t part_bytes_;
  int part_ = 0;
  int64_t used_ = 0;  // of the part
};

}  // namespace comera::gpu
