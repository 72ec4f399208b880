#include "core/comm/mpi.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace comera::test {
namespace {

TEST(Processes, AreNotThereWhereNobodyStartedThem) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) ASSERT_EQ(std::getenv(name), nullptr);
  EXPECT_EQ(join_processes(), nullptr);
}

// A variable of the environment while this lives.
struct Set {
  const char* name;
  Set(const char* variable, const char* value) : name(variable) { ::setenv(name, value, 1); }
  ~Set() { ::unsetenv(name); }
};

TEST(Processes, AreCountedByWhatStartedThem) {
  EXPECT_EQ(started_processes(), 1);
  EXPECT_EQ(started_as_process(), 0);
  {
    const Set size("OMPI_COMM_WORLD_SIZE", "3"), number("OMPI_COMM_WORLD_RANK", "2");
    EXPECT_EQ(started_processes(), 3);
    EXPECT_EQ(started_as_process(), 2);
  }
  {
    const Set size("PMI_SIZE", "1"), number("PMI_RANK", "0");
    EXPECT_EQ(started_processes(), 1);
  }
  const Set number("PMIX_RANK", "1");
  EXPECT_GT(started_processes(), 1) << "as far as is known";
  const Set tasks("SLURM_STEP_NUM_TASKS", "1");
  EXPECT_EQ(started_processes(), 1);
}

}  // namespace
}  // namespace comera::test
