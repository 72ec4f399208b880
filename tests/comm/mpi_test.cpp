#include "core/comm/mpi.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace comera::test {
namespace {

TEST(Processes, AreNotThereWhereNobodyStartedThem) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) ASSERT_EQ(std::getenv(name), nullptr);
  EXPECT_EQ(join_processes(), nullptr);
}

}  // namespace
}  // namespace comera::test
