#include "core/tensor/memory.h"

#include <cstdio>
#include <utility>

namespace comera {

const char* name_of(Purpose purpose) {
  static constexpr const char* kNames[kPurposes] = {"tt_core",   "dense_weight", "rank_vector", "gradient",
                                                    "optimizer", "activation",   "workspace",   "data"};
  return kNames[static_cast<size_t>(purpose)];
}

namespace {
MemoryByPurpose only(Purpose purpose, int64_t bytes) {
  MemoryByPurpose split;
  split[purpose] = bytes;
  return split;
}
}  // namespace

Buffer::Buffer(Memory& memory, int64_t bytes, Purpose purpose) : Buffer(memory, only(purpose, bytes)) {}

Buffer::Buffer(Memory& memory, const MemoryByPurpose& split) : split_(split) {
  if (bytes() > 0) data_ = memory.allocator_.allocate(bytes());
  memory_ = &memory;
  for (size_t i = 0; i < split_.bytes.size(); ++i) memory.now_.bytes[i] += split_.bytes[i];
  if (memory.now_.total() > memory.peak_.total()) memory.peak_ = memory.now_;
}

Buffer::~Buffer() {
  if (!memory_) return;
  for (size_t i = 0; i < split_.bytes.size(); ++i) memory_->now_.bytes[i] -= split_.bytes[i];
  if (data_) memory_->allocator_.release(data_);
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(data_, other.data_);
  std::swap(split_, other.split_);
}

std::string LackOfRoom::text() const {
  char text[96];
  const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / (1024 * 1024); };
  std::snprintf(text, sizeof text, "%.1f MiB more are needed, %.1f MiB are free", mib(need), mib(free));
  return text;
}

std::optional<LackOfRoom> lack_of_room(const MemoryByPurpose& planned, const MemoryByPurpose& held, int64_t available) {
  const LackOfRoom lack{planned.total() - held.total(), available};
  return lack.need > lack.free ? std::optional(lack) : std::nullopt;
}

}  // namespace comera
