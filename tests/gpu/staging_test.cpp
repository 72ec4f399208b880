// Uploads through a ring of memory that the device reads later: nothing is overwritten before it was read.
#include "gpu/staging.h"

#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <vector>

namespace comera::test {
namespace {

// Copies happen as late as they may: when somebody waits.
class SlowLane {
 public:
  explicit SlowLane(int64_t part_bytes) : memory_(static_cast<size_t>(gpu::Staging<SlowLane>::kParts * part_bytes)) {}
  char* memory() { return memory_.data(); }
  void copy(void* to, const void* from, int64_t bytes) { copies_.push_back({to, from, bytes}); }
  void mark(int part) { marks_[part] = made_ + static_cast<int64_t>(copies_.size()); }
  void wait(int part) { make(marks_[part]); }
  void make_all() { make(made_ + static_cast<int64_t>(copies_.size())); }
  int64_t made() const { return made_; }

 private:
  struct Copy {
    void* to;
    const void* from;
    int64_t bytes;
  };
  void make(int64_t until) {
    for (; made_ < until; ++made_, copies_.pop_front())
      std::memcpy(copies_.front().to, copies_.front().from, static_cast<size_t>(copies_.front().bytes));
  }
  std::vector<char> memory_;
  std::deque<Copy> copies_;
  int64_t made_ = 0, marks_[gpu::Staging<SlowLane>::kParts] = {};
};

TEST(Staging, NothingIsOverwrittenBeforeItHasArrived) {
  for (const int64_t part : {1, 7, 64}) {
    SlowLane lane(part);
    gpu::Staging<SlowLane> staging(lane, part);
    std::vector<char> device(1000, 0), host(1000);
    std::iota(host.begin(), host.end(), char{1});
    const std::vector<char> expected = host;
    for (int64_t at = 0, size = 0; at < 1000; at += size, size = size % 150 + 13) {  // of no part's size, and larger than all parts
      const int64_t bytes = std::min<int64_t>(size, 1000 - at);
      staging.upload(device.data() + at, host.data() + at, bytes);
      std::fill_n(host.begin() + at, bytes, '\0');  // may go at once
    }
    EXPECT_GT(lane.made(), 0) << "it never had to wait: the test shows too little";
    lane.make_all();
    EXPECT_EQ(device, expected) << part;
  }
}

TEST(Staging, WaitsOnlyWhenTheRingIsFull) {
  constexpr int64_t kPart = 100;
  SlowLane lane(kPart);
  gpu::Staging<SlowLane> staging(lane, kPart);
  std::vector<char> device(40), host(40, 'x');
  for (int i = 0; i < 10; ++i) staging.upload(device.data(), host.data(), 40);  // 400 bytes: four parts
  EXPECT_EQ(lane.made(), 0);
  staging.upload(device.data(), host.data(), 40);
  EXPECT_GT(lane.made(), 0);
  EXPECT_LT(lane.made(), 5) << "only what the first part was used for";
}

struct Part {
  int64_t at;
  const char* host;
  int64_t bytes;
};

// Round the ring several times, between uploads of other sizes, each to a place of its own.
TEST(Staging, PartsOfABlockAreOneCopyWhereTheyFit) {
  constexpr int kRounds = 12;
  for (const int64_t room : {10, 40, 100}) {
    SlowLane lane(room);
    gpu::Staging<SlowLane> staging(lane, room);
    std::vector<std::vector<char>> devices(kRounds, std::vector<char>(60, '.'));
    int64_t copies = 0;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<char> host(50, static_cast<char>('a' + round));
      const std::vector<Part> parts{{3, host.data(), 5}, {8, host.data(), 1}, {20, host.data(), 15}};  // 32 bytes with their gap
      char* device = devices[static_cast<size_t>(round)].data();
      staging.upload_parts(device, parts);
      staging.upload(device + 50, host.data(), 7);
      std::fill(host.begin(), host.end(), '!');  // may go at once
      copies += 2;
    }
    EXPECT_GT(lane.made(), 0) << "it never had to wait: the test shows too little";
    lane.make_all();
    if (room == 100) {
      EXPECT_LT(lane.made(), copies + kRounds) << "a part of the ring may end inside the second";
    }
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<char>& device = devices[static_cast<size_t>(round)];
      for (int at : {3, 7, 8, 20, 34, 50, 56})
        EXPECT_EQ(device[static_cast<size_t>(at)], 'a' + round) << round << " at " << at << " by " << room;
      for (int at : {2, 35, 57}) EXPECT_EQ(device[static_cast<size_t>(at)], '.') << round << " at " << at << " by " << room;
    }
  }
  SlowLane lane(40);
  gpu::Staging<SlowLane> staging(lane, 40);
  std::vector<char> device(50), host(50, 'x');
  staging.upload_parts(device.data(), std::vector<Part>{{3, host.data(), 5}, {20, host.data(), 15}});
  lane.make_all();
  EXPECT_EQ(lane.made(), 1);
}

}  // namespace
}  // namespace comera::test
