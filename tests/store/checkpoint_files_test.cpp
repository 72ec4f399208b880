// Which store lists a run's checkpoints, and that looking for it disturbs nobody.
#include "core/store/checkpoint_files.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/store/schema.h"
#include "tests/store/support.h"

namespace comera {
namespace {
using test::Folder;

// Whether this process holds a lock on a byte of the file, as others see it. The file is not opened here: that would drop the lock.
bool locked(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;  // all of the file
    const int file = ::open(path.c_str(), O_RDWR);
    ::_exit(file >= 0 && ::fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status) == 1;
}

std::string run_with_checkpoint(const std::string& store) {
  RunWriter writer(store, test::start_of("listed"), test::quick());
  writer.checkpoint(1, "elsewhere/step-000000001.safetensors", 5, "periodic");
  EXPECT_TRUE(writer.flush());
  writer.finish("finished");
  return writer.run_id();
}

TEST(CheckpointFiles, LooksForOtherStoresWithoutTakingLocksFromItself) {
  const Folder folder;
  const std::string run = run_with_checkpoint(folder.store());
  const auto db = open_store(folder.store(), StoreAccess::write);
  db->run("BEGIN IMMEDIATE");
  const std::vector<std::string> files = {folder.store(), folder.store() + "-shm"};
  for (const std::string& file : files) ASSERT_TRUE(locked(file)) << file;
  EXPECT_EQ(lister_of(folder.store(), run, {}), "");
  for (const std::string& file : files) EXPECT_TRUE(locked(file)) << file;
  db->run("COMMIT");
}

TEST(CheckpointFiles, FindsTheStoreThatListsThem) {
  const Folder folder, other;
  const std::string run = run_with_checkpoint(folder.store());
  const std::string copy = folder.file("copy.sqlite"), spare = folder.store() + ".v1-backup", away = other.file("away.db");
  std::filesystem::copy_file(folder.store(), spare);
  std::ofstream(folder.file("text.db")) << "SQLite format 3, it says";
  EXPECT_EQ(lister_of(folder.store(), run, {}), "") << "neither a backup of a migration nor other files count";
  std::filesystem::copy_file(folder.store(), away);
  EXPECT_EQ(lister_of(away, run, {}), "");
  EXPECT_EQ(lister_of(away, run, {folder.file("checkpoints/" + run + "/step-1")}), folder.store()) << "to which the file belongs";
  std::filesystem::copy_file(folder.store(), copy);
  EXPECT_EQ(lister_of(folder.store(), run, {}), copy);
  EXPECT_EQ(lister_of(folder.store(), "r-other1", {}), "");
  std::filesystem::resize_file(copy, 200);
  EXPECT_EQ(lister_of(folder.store(), "r-other1", {}), copy) << "it cannot be read, and may list them";
}

TEST(CheckpointFiles, LieWhereTheStoreIsNow) {
  const Folder folder;
  const std::string here = checkpoint_folder(folder.store(), "r-abcdef") + "/step-000000001.safetensors";
  EXPECT_EQ(here, folder.file("checkpoints/r-abcdef/step-000000001.safetensors"));
  const std::string before = "/gone/checkpoints/r-abcdef/step-000000001.safetensors";
  EXPECT_EQ(place_of_checkpoint(before, folder.store()), before);
  std::filesystem::create_directories(std::filesystem::path(here).parent_path());
  std::ofstream(here) << "weights";
  for (const std::string& path : {before, std::string("checkpoints/r-abcdef/step-000000001.safetensors")})
    EXPECT_EQ(place_of_checkpoint(path, folder.store()), here);
  for (const char* path : {"/my-checkpoints/r-abcdef/step-000000001.safetensors", "/elsewhere/step-000000001.safetensors"})
    EXPECT_EQ(place_of_checkpoint(path, folder.store()), path);
}

}  // namespace
}  // namespace comera
