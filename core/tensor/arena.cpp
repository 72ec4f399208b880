#include "core/tensor/arena.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/base/error.h"

namespace comera {
Lease::Lease(Arena* arena, int64_t block) : arena_(arena), block_(block) {
  if (arena_) arena_->claim(block_);
}
Lease::Lease(const Lease& other) : Lease(other.arena_, other.block_) {}
Lease& Lease::operator=(Lease other) noexcept {
  std::swap(arena_, other.arena_);
  std::swap(block_, other.block_);
  return *this;
}
Lease::~Lease() {
  if (arena_) arena_->drop(block_);
}
bool Lease::is_only() const { return arena_ && arena_->handles_[static_cast<size_t>(block_)] == 1; }

void Arena::record() {
  for (int32_t handles : handles_) CHECK(handles == 0, "a temporary of the last step is still held when a new plan begins");
  blocks_.clear();
  handles_.clear();
  base_ = nullptr;
  next_ = event_ = peak_bytes_ = 0;
  turn_ = -1;
  recording_ = true;
}

void Arena::mark_turn() {
  if (recording_) turn_ = event_++;
}

void* Arena::take(int64_t bytes, const char* tag, Lease& lease) {
  if (recording_) {
    blocks_.push_back({aligned(bytes), 0, event_++, -1, tag});
    handles_.push_back(0);
    lease = Lease(this, static_cast<int64_t>(blocks_.size()) - 1);
    return nullptr;
  }
  CHECK(next_ < static_cast<int64_t>(blocks_.size()), "request '" << tag << "' after the last planned one");
  const Block& block = blocks_[static_cast<size_t>(next_)];
  CHECK(block.bytes == aligned(bytes) && std::strcmp(block.tag, tag) == 0,
        "request " << next_ << " is '" << tag << "' of " << bytes << " bytes, planned was '" << block.tag << "' of " << block.bytes);
  CHECK(base_, "the plan has no memory yet");
  lease = Lease(this, next_++);
  return base_ + block.offset;
}

void Arena::claim(int64_t block) { ++handles_[static_cast<size_t>(block)]; }

void Arena::drop(int64_t block) {
  const size_t index = static_cast<size_t>(block);
  if (index >= handles_.size() || handles_[index] == 0) return;  // outlived a plan: nothing is left to give back
  if (--handles_[index] == 0 && recording_) blocks_[index].died = event_++;
}

void Arena::plan() {
  CHECK(recording_, "plan without a recording");
  recording_ = false;
  for (Block& block : blocks_)
    if (block.died < 0) block.died = event_;  // kept to the end of the program
  std::vector<size_t> order(blocks_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks_[a].bytes > blocks_[b].bytes; });
  std::vector<size_t> placed;  // by offset
  for (size_t index : order) {
    Block& block = blocks_[index];
    int64_t offset = 0;
    for (size_t other_index : placed) {
      const Block& other = blocks_[other_index];
      if (other.died < block.born || block.died < other.born) continue;  // never alive together
      if (other.offset >= offset + block.bytes) break;                   // the gap before it is large enough
      offset = std::max(offset, other.offset + other.bytes);
    }
    block.offset = offset;
    peak_bytes_ = std::max(peak_bytes_, offset + block.bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), index, [&](size_t a, size_t b) { return blocks_[a].offset < blocks_[b].offset; }),
        index);
  }
}

MemoryByPurpose Arena::peak_by_purpose() const {
  // The largest sum of blocks that are kept across the turn; the rest of the plan is workspace.
  int64_t kept = 0;
  for (const Block& block : blocks_)
    if (turn_ >= 0 && block.born < turn_ && block.died > turn_) kept += block.bytes;
  MemoryByPurpose out;
  out[Purpose::activation] = std::min(kept, peak_bytes_);
  out[Purpose::workspace] = peak_bytes_ - out[Purpose::activation];
  return out;
}

std::vector<int64_t> Arena::alive(int64_t from, int64_t to, size_t parts) const {
  if (to <= from || parts == 0) return {};
  std::vector<int64_t> changes(static_cast<size_t>(event_) + 2, 0);
  for (const Block& block : blocks_) {  // up to and with the event in which it dies, as plan() has it
    changes[static_cast<size_t>(block.born)] += block.bytes;
    changes[static_cast<size_t>(block.died) + 1] -= block.bytes;
  }
  const auto count = std::min(parts, static_cast<size_t>(to - from));
  std::vector<int64_t> out(count, 0);
  int64_t bytes = 0;
  for (int64_t event = 0; event < to; ++event) {
    bytes += changes[static_cast<size_t>(event)];
    if (event < from) continue;
    int64_t& most = out[static_cast<size_t>(event - from) * count / static_cast<size_t>(to - from)];
    most = std::max(most, bytes);
  }
  return out;
}

void Arena::rewind() {
  for (int32_t handles : handles_) CHECK(handles == 0, "a temporary of the last step is still held");
  next_ = 0;
}

}  // namespace comera
