// A disk that takes no more than a name.
#include "app/studio/parts/export.h"
#include "tests/store/support.h"

namespace comera::studio {
namespace {

TEST(FileWriter, AFileThatADiskDoesNotTakeIsAProblemHoweverSmallItIs) {
  const test::Folder folder;
  test::SmallDisk disk(folder.file("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "needs the right to mount a small tmpfs";
  disk.fill();
  FileWriter writer;
  const auto write = [&] {
    writer.write({folder.file("disk"), {{"loss", "csv", [] { return std::string("step,loss\n1,0.5\n"); }}}});
    std::vector<FileWriter::Result> results;
    EXPECT_TRUE(test::wait_for([&] { return !(results = writer.take_results()).empty(); }));
    return results.empty() ? FileWriter::Result{} : results[0];
  };
  const FileWriter::Result full = write();
  EXPECT_TRUE(test::has(full.problem, {"cannot write " + folder.file("disk/loss"), "No space left"}));
  EXPECT_TRUE(full.written.empty());
  disk.empty();
  const FileWriter::Result saved = write();
  EXPECT_EQ(saved.problem, "");
  ASSERT_EQ(saved.written.size(), 1u);
  EXPECT_EQ(test::read_text(saved.written[0]), "step,loss\n1,0.5\n");
}

}  // namespace
}  // namespace comera::studio
