// Errors are of one line each, whatever text of a file they have.
#include "core/base/error.h"

#include <gtest/gtest.h>

namespace comera {
namespace {

TEST(Error, TextsAreOneLine) {
  const Error error(ErrorCode::config, "a\nb", "c\td\r", std::string("e\0f", 3));
  EXPECT_STREQ(error.what(), "a b");
  EXPECT_EQ(error.why(), "c d ");
  EXPECT_EQ(error.hint(), "e f");
}

}  // namespace
}  // namespace comera
