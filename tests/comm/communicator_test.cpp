// Texts, messages and errors of processes that train together.
#include <gtest/gtest.h>

#include "core/comm/process_threads.h"

namespace comera::test {
namespace {

TEST(Communicator, GivesTheTextsOfAllInAscendingOrder) {
  const auto ends = run_processes(3, [](Communicator& all) {
    const std::string mine(static_cast<size_t>(all.process()), static_cast<char>('a' + all.process()));
    EXPECT_EQ(all.exchange(mine), (std::vector<std::string>{"", "b", "cc"}));
  });
  EXPECT_EQ(ends, std::vector<std::string>(3));
}

TEST(Communicator, TradesAndGathersPieces) {
  run_processes(3, [](Communicator& all) {
    const int p = all.process(), mine[] = {10 * p, 10 * p + 1, 10 * p + 2};
    int traded[3] = {}, gathered[3] = {};
    all.trade(mine, traded, sizeof(int));
    EXPECT_EQ(std::vector<int>(traded, traded + 3), (std::vector<int>{p, 10 + p, 20 + p}));
    all.gather(&p, gathered, sizeof(int));
    EXPECT_EQ(std::vector<int>(gathered, gathered + 3), (std::vector<int>{0, 1, 2}));
  });
}

// Whoever fails, and whenever, all end with its error.
TEST(Communicator, TellsAllWhyOneProcessEnds) {
  for (int failing = 0; failing < 3; ++failing) {
    std::vector<std::string> whys(3);
    const auto ends = run_processes(3, [&](Communicator& all) {
      all.exchange("begins");
      if (all.process() == failing) throw Error(ErrorCode::memory, "no room", "the disk\tis full", "delete something");
      try {
        all.exchange("goes on");
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::memory);
        whys[static_cast<size_t>(all.process())] = error.why() + "; " + error.hint();
        throw;
      }
    });
    for (int p = 0; p < 3; ++p) {
      EXPECT_EQ(ends[static_cast<size_t>(p)],
                (failing == 0 || p == failing ? "" : "process " + std::to_string(failing) + ": ") + std::string("no room"));
      EXPECT_EQ(whys[static_cast<size_t>(p)], p == failing ? "" : "the disk is full; delete something") << "a line";
    }
  }
}

TEST(Communicator, RefusesProcessesThatDiffer) {
  const auto ends = run_processes(3, [](Communicator& all) {
    check_alike(all, "same", "another version", "");
    check_alike(all, all.process() == 2 ? "b" : "a", "another config", "use the same command");
  });
  EXPECT_EQ(ends, std::vector<std::string>(3, "process 2 has another config than process 0"));
}

}  // namespace
}  // namespace comera::test
