// The writer's thread survives when the system refuses memory: what has to go is metric values, and it is said.
#include <atomic>
#include <cstdlib>
#include <new>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/store/run_ops.h"
#include "tests/store/support.h"

namespace {
std::atomic<std::size_t> g_refused_from{SIZE_MAX};  // bytes of one request
std::atomic<int> g_refused_after{-1};               // requests that are served before one is refused; -1 = none is
}  // namespace
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kRefuses = false;  // the sanitizers bring allocators of their own
#else
constexpr bool kRefuses = true;
// noinline: GCC else sees malloc and free through them and warns of a mismatch.
__attribute__((noinline)) void* operator new(std::size_t bytes) {
  if (bytes < g_refused_from && (g_refused_after < 0 || g_refused_after-- != 0))
    if (void* data = std::malloc(bytes ? bytes : 1)) return data;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* data) noexcept { std::free(data); }
__attribute__((noinline)) void operator delete(void* data, std::size_t) noexcept { std::free(data); }
#endif

namespace comera {
namespace {

TEST(LackOfMemory, TheWriterDropsMetricValuesAndSaysSo) {
  if (!kRefuses) GTEST_SKIP() << "the sanitizer's allocator does not refuse";
  test::Folder folder;
  RunWriterOptions options = test::quick();
  options.commit_s = 1000;  // it takes nothing before it is asked to
  RunWriter writer(folder.store(), test::start_of("a"), options);
  ASSERT_TRUE(writer.flush());
  for (int64_t step = 1; step <= 3000; ++step) writer.metrics(step, NamedValues{{"loss", 1.0}});
  writer.event(7, "note");
  g_refused_from = 64 << 10;
  EXPECT_FALSE(writer.flush());
  g_refused_from = SIZE_MAX;
  EXPECT_TRUE(test::has(writer.store_problem(), {"out of memory"}));
  writer.metrics(3001, NamedValues{{"loss", 2.0}});
  EXPECT_TRUE(writer.flush());
  EXPECT_EQ(writer.store_problem(), "");
  const RunReader reader(folder.store());
  EXPECT_EQ(reader.metric(writer.run_id(), "loss").steps, std::vector<int64_t>{3001});
  const auto events = reader.events(writer.run_id());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, "note") << "what is few and small is kept";
  EXPECT_EQ(parse_valid_json(events[1].body).at("text"), "3000 metric values were lost for want of memory, steps 1 to 3000");
}

TEST(LackOfMemory, ANameOfAMetricIsKnownWholeOrNotAtAll) {
  if (!kRefuses) GTEST_SKIP() << "the sanitizer's allocator does not refuse";
  const std::string name(200, 'n');
  int refused = 0;
  for (bool taken = false; !taken; ++refused) {
    MetricNames names;
    names.index("a");
    g_refused_after = refused;
    try {
      names.index(name);
      taken = true;
    } catch (const std::bad_alloc&) {
    }
    g_refused_after = -1;
    if (taken) break;
    EXPECT_EQ(names.size(), 1);
    EXPECT_EQ(names.index("b"), 1);
    EXPECT_EQ(names.index(name), 2);
    EXPECT_EQ(names.name(2), name);
    ASSERT_LT(refused, 20);
  }
  EXPECT_GE(refused, 2) << "two texts are kept";
}

}  // namespace
}  // namespace comera
