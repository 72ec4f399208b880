// Record, plan, replay: no two living blocks overlap, the peak is the lower bound where it can be, addresses repeat,
// and a step that diverges from its plan is noticed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <vector>

#include "core/tensor/arena.h"
#include "core/tensor/tensor.h"

namespace comera {
namespace {

Tensor take(Arena& arena, int64_t bytes, const char* tag = "t") {
  Lease lease;
  void* data = arena.take(bytes, tag, lease);
  return Tensor(data, {bytes}, DType::u8, std::move(lease));
}

int64_t largest_living(const std::vector<Arena::Block>& blocks) {
  int64_t most = 0;
  for (const Arena::Block& at : blocks) {
    int64_t sum = 0;
    for (const Arena::Block& other : blocks)
      if (other.born <= at.born && other.died >= at.born) sum += other.bytes;
    most = std::max(most, sum);
  }
  return most;
}

void expect_no_overlap(const Arena& arena) {
  const auto& blocks = arena.blocks();
  for (size_t i = 0; i < blocks.size(); ++i)
    for (size_t j = i + 1; j < blocks.size(); ++j) {
      const bool together = blocks[i].died >= blocks[j].born && blocks[j].died >= blocks[i].born;
      const bool overlap = blocks[i].offset < blocks[j].offset + blocks[j].bytes && blocks[j].offset < blocks[i].offset + blocks[i].bytes;
      EXPECT_FALSE(together && overlap && blocks[i].bytes && blocks[j].bytes) << i << " and " << j;
    }
}

TEST(Arena, ReusesWhatWasDropped) {
  Arena arena;
  arena.record();
  Tensor a = take(arena, 1000);
  Tensor b = take(arena, 500);
  a = {};
  Tensor c = take(arena, 900);
  b = {};
  c = {};
  arena.plan();
  expect_no_overlap(arena);
  EXPECT_EQ(arena.peak_bytes(), 1024 + 512);  // c lies where a was
}

TEST(Arena, RandomProgramsNeverOverlapAndReplayAtTheSameAddresses) {
  std::srand(3);
  for (int round = 0; round < 50; ++round) {
    const int count = 40;
    std::vector<int> size, drop_after;
    for (int i = 0; i < count; ++i) {
      size.push_back(1 + std::rand() % 5000);
      drop_after.push_back(i + std::rand() % 12);
    }
    const auto program = [&](Arena& arena) {
      std::vector<Tensor> held(count);
      std::vector<void*> addresses;
      for (int i = 0; i < count; ++i) {
        held[static_cast<size_t>(i)] = take(arena, size[static_cast<size_t>(i)]);
        addresses.push_back(held[static_cast<size_t>(i)].raw());
        for (int k = 0; k <= i; ++k)
          if (drop_after[static_cast<size_t>(k)] == i) held[static_cast<size_t>(k)] = {};
      }
      return addresses;
    };
    Arena arena;
    arena.record();
    program(arena);
    arena.plan();
    expect_no_overlap(arena);
    EXPECT_GE(arena.peak_bytes(), largest_living(arena.blocks()));
    std::vector<char> memory(static_cast<size_t>(arena.peak_bytes()));
    arena.attach(memory.data());
    arena.rewind();
    const std::vector<void*> first = program(arena);
    arena.rewind();
    EXPECT_EQ(first, program(arena));
    for (void* address : first) {
      EXPECT_GE(address, static_cast<void*>(memory.data()));
      EXPECT_LT(address, static_cast<void*>(memory.data() + memory.size()));
    }
  }
}

TEST(Arena, DivergenceFromThePlanThrows) {
  Arena arena;
  arena.record();
  { Tensor a = take(arena, 100, "a"); }
  arena.plan();
  std::vector<char> memory(static_cast<size_t>(arena.peak_bytes()));
  arena.attach(memory.data());
  arena.rewind();
  EXPECT_THROW(take(arena, 200, "a"), Error);  // another size
  arena.rewind();
  EXPECT_THROW(take(arena, 100, "b"), Error);  // another name
  arena.rewind();
  { Tensor a = take(arena, 100, "a"); }
  EXPECT_THROW(take(arena, 100, "a"), Error);  // one too many
}

TEST(Arena, HeldTemporaryStopsTheNextStep) {
  Arena arena;
  arena.record();
  { Tensor a = take(arena, 100); }
  arena.plan();
  std::vector<char> memory(static_cast<size_t>(arena.peak_bytes()));
  arena.attach(memory.data());
  arena.rewind();
  Tensor kept = take(arena, 100);
  EXPECT_THROW(arena.rewind(), Error);
}

TEST(Arena, SplitsThePeakIntoActivationsAndWorkspace) {
  Arena arena;
  arena.record();
  Tensor kept = take(arena, 640);
  { Tensor temporary = take(arena, 320); }
  arena.mark_turn();
  { Tensor temporary = take(arena, 128); }
  kept = {};
  arena.plan();
  const MemoryByPurpose split = arena.peak_by_purpose();
  EXPECT_EQ(split[Purpose::activation], 640);
  EXPECT_EQ(split.total(), arena.peak_bytes());
}

class CountingAllocator : public Allocator {
 public:
  int64_t held = 0;
  void* allocate(int64_t bytes) override {
    held += bytes;
    return std::malloc(static_cast<size_t>(bytes));
  }
  void release(void* data) noexcept override { std::free(data); }
};

// By hand: events are a's request, b's, the drop of a, the turn, c's request, the drops of b and c.
TEST(Arena, TellsWhatIsAliveInItsCourse) {
  Arena arena;
  arena.record();
  {
    Lease a, b, c;
    arena.take(64, "a", a);
    arena.take(128, "b", b);
    a = {};
    arena.mark_turn();
    arena.take(256, "c", c);
    b = {};
  }
  arena.plan();
  ASSERT_EQ(arena.events(), 7);
  EXPECT_EQ(arena.alive(0, 7, 100), (std::vector<int64_t>{64, 192, 192, 128, 384, 384, 256}));
  EXPECT_EQ(arena.alive(0, arena.turn(), 1), std::vector<int64_t>{192});
  EXPECT_EQ(arena.alive(arena.turn(), 7, 2), (std::vector<int64_t>{384, 384}));
  EXPECT_EQ(arena.peak_bytes(), 384);
  EXPECT_TRUE(arena.alive(3, 3, 5).empty());
}

TEST(Memory, CountsByPurposeAndKeepsThePeak) {
  CountingAllocator allocator;
  Memory memory(allocator);
  {
    Buffer a(memory, 100, Purpose::tt_core);
    Buffer b(memory, 50, Purpose::optimizer);
    EXPECT_EQ(memory.now()[Purpose::tt_core], 100);
    EXPECT_EQ(memory.now().total(), 150);
    b = Buffer();
    Buffer moved = std::move(a);
    EXPECT_EQ(memory.now().total(), 100);
  }
  EXPECT_EQ(memory.now().total(), 0);
  EXPECT_EQ(memory.peak().total(), 150);
  EXPECT_EQ(memory.peak()[Purpose::optimizer], 50);
}

TEST(Tensor, ViewsCheckTheirCounts) {
  std::vector<float> data(12);
  const Tensor t(data.data(), {3, 4}, DType::f32);
  EXPECT_EQ(t.view({2, 6}).size(1), 6);
  EXPECT_THROW(t.view({5}), Error);
  EXPECT_EQ(t.rows(1, 2).raw(), data.data() + 4);
  EXPECT_THROW(t.rows(2, 2), Error);
  EXPECT_THROW(t.data<double>(), Error);
  const Mat m = Mat(t).columns(1, 2);
  EXPECT_EQ(m.ld, 4);
  EXPECT_EQ(m.data<float>(), data.data() + 1);
  EXPECT_THROW(Mat(t).columns(3, 2), Error);
  const Mat empty = Tensor(nullptr, {0, 2, 3}, DType::f32);  // without rows it keeps its columns
  EXPECT_EQ(empty.cols, 6);
  EXPECT_EQ(empty.ld, 6);
}

}  // namespace
}  // namespace comera
