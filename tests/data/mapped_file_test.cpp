// Files that are written while they are mapped.
#include "core/base/mapped_file.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "core/data/datasets.h"
#include "core/data/prefetch.h"
#include "tests/data/support.h"

namespace comera {
namespace {

namespace fs = std::filesystem;
using test::caught;
using test::expect_told;
using test::Folder;

// Writes into the file that is there; its modification time is different also on a disk of coarse times.
void overwrite(const std::string& path, const std::string& bytes) {
  const fs::file_time_type before = fs::last_write_time(path);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  if (fs::last_write_time(path) == before) fs::last_write_time(path, before + std::chrono::seconds(1));
}

TEST(MappedFile, BehindTheNewEndOfACutFileAreZeros) {
  const Folder folder;
  const std::string path = folder.write("rows", std::string(100'000, 'x'));
  const MappedFile file(path), other(path);
  const fs::file_time_type written = fs::last_write_time(path);
  file.check_unchanged(kChangedData);
  fs::resize_file(path, 10);
  EXPECT_EQ(file.bytes()[9], 'x');
  EXPECT_EQ(file.bytes()[99'999], '\0');
  EXPECT_EQ(file.bytes()[50'000], '\0');
  EXPECT_EQ(other.bytes()[99'999], '\0');
  for (const MappedFile* one : {&file, &other})
    expect_told(caught([&] { one->check_unchanged(kChangedData); }), ErrorCode::config, "rows was changed while it was in use",
                "it had 100000 bytes, now 10");
  // What was once read as zeros stays so, though the file is as before.
  overwrite(path, std::string(100'000, 'x'));
  fs::last_write_time(path, written);
  EXPECT_EQ(file.bytes()[99'999], '\0');
  EXPECT_THROW(file.check_unchanged(kChangedData), Error);
}

TEST(MappedFile, AWriteOfTheSameLengthIsNoticed) {
  const Folder folder;
  const std::string path = folder.write("rows", "first");
  const MappedFile file(path);
  overwrite(path, "other");
  expect_told(caught([&] { file.check_unchanged(kChangedData); }), ErrorCode::config, "was changed while it was in use",
              "its modification time");
}

TEST(MappedFile, AFileThatIsReplacedIsTheOneThatWasMapped) {
  const Folder folder;
  const std::string path = folder.write("rows", "first");
  const MappedFile file(path);
  fs::rename(folder.write("new", "other"), path);
  file.check_unchanged(kChangedData);
  EXPECT_EQ(file.bytes(), "first");
  fs::remove(path);
  file.check_unchanged(kChangedData);
}

TEST(MappedFile, BatchesOfASetThatWasWrittenAreNotMade) {
  const std::string images = test::idx_images(64, 4, 4, std::string(64 * 16, 'p')), text = "sentence\tlabel\na b\t0\nc d\t1\na\t0\nb\t1\n";
  const Folder folder;
  folder.write("train-images-idx3-ubyte", images);
  folder.write("train-labels-idx1-ubyte", test::idx_labels(std::string(64, '\1')));
  const std::string rows = folder.write("rows.tsv", text);
  struct Case {
    std::string set, file, now;
  };
  for (const Case& one : {Case{rows, rows, "sentence\tlabel\nx\t0\n"}, Case{rows, rows, text},
                          Case{folder / "train-images-idx3-ubyte", folder / "train-labels-idx1-ubyte", "short"}}) {
    SCOPED_TRACE(one.file + " " + one.now);
    const std::string before = test::read_file(one.file);
    DataSpec spec;
    spec.path = one.set, spec.assets = test::kAssets;
    const std::unique_ptr<Dataset> data = open_dataset(spec);
    BatchOptions options;
    options.batch_size = 2, options.length = 8;
    Batch batch;
    ASSERT_TRUE(make_batch(*data, options, 0, batch));
    Prefetcher ahead(*data, options, 0);
    ahead.wait();  // the first batch is made; the next ones see the file as it is now
    overwrite(one.file, one.now);
    EXPECT_NO_THROW(ahead.next());
    expect_told(caught([&] { make_batch(*data, options, 0, batch); }), ErrorCode::config, "was changed while it was in use", "");
    for (int again = 0; again < 2; ++again)
      expect_told(caught([&] { ahead.wait(); }), ErrorCode::config, "was changed while it was in use", "");
    overwrite(one.file, before);
  }
}

}  // namespace
}  // namespace comera
