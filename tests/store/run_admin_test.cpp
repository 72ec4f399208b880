// Renaming, tagging, archiving and purging; what is refused leaves everything as it was.
#include "core/store/run_admin.h"

#include "tests/store/support.h"

namespace comera {
namespace {

using test::error_of;
using test::Folder;
using test::has;
using test::make_run;
namespace fs = std::filesystem;

TEST(RunAdmin, ChangesWhatAPersonMayChange) {
  Folder folder;
  const std::string id = make_run(folder.store(), "a"), other = make_run(folder.store(), "b");
  RunAdmin admin(folder.store());
  admin.rename(id, "better, \"name\"");
  admin.add_tag(id, "baseline");
  admin.add_tag(id, "baseline");
  admin.remove_tag(id, "good");
  admin.remove_tag(id, "never there");
  admin.set_notes(id, "two\nlines");
  RunReader reader(folder.store());
  RunRow run = reader.run(id);
  EXPECT_EQ(run.name, "better, \"name\"");
  EXPECT_EQ(run.tags, std::vector<std::string>{"baseline"});
  EXPECT_EQ(run.notes, "two\nlines");
  admin.archive(id);
  EXPECT_EQ(reader.runs().size(), 1u);
  EXPECT_EQ(reader.runs(true).size(), 2u);
  EXPECT_TRUE(reader.find("better").archived);
  admin.restore(id);
  EXPECT_EQ(reader.runs().size(), 2u);
  for (const char* bad : {"", "two\nlines", "tab\t"}) {
    EXPECT_TRUE(has(error_of([&] { admin.rename(id, bad); }), {test::code(ErrorCode::usage), "one line"}));
    EXPECT_TRUE(has(error_of([&] { admin.add_tag(id, bad); }), {test::code(ErrorCode::usage), "one line"}));
  }
  EXPECT_TRUE(has(error_of([&] { admin.archive("r-nosuch"); }), {test::code(ErrorCode::not_found)}));
  EXPECT_TRUE(has(error_of([&] { RunAdmin(folder.file("no.db")); }), {test::code(ErrorCode::not_found)}));
  EXPECT_EQ(reader.run(other).name, "b");
}

TEST(RunAdmin, PurgeNeedsTheNameAndTakesRowsAndFiles) {
  Folder folder;
  std::string id;
  const std::string keep = make_run(folder.store(), "keep");
  fs::path run_folder;
  {
    RunWriter writer(folder.store(), test::start_of("junk"), test::quick());
    id = writer.run_id();
    run_folder = fs::path(folder.path()) / "checkpoints" / id;
    fs::create_directories(run_folder);
    for (const char* name : {"step-000000001.safetensors", "step-000000002.safetensors", "step-000000003.safetensors.part-77"})
      test::write_text((run_folder / name).string(), "12345");
    test::write_text(folder.file("elsewhere.safetensors"), "123");
    writer.metrics(1, NamedValues{{"loss", 1.0}});
    writer.rank(1, "l", 1, 1);
    writer.memory(1, "data", 1);
    writer.event(1, "start");
    writer.checkpoint(1, (run_folder / "step-000000001.safetensors").string(), 5, "periodic");  // 2 has no row, as after a resume
    writer.checkpoint(5, folder.file("elsewhere.safetensors"), 3, "command");
    writer.checkpoint(6, folder.file("gone.safetensors"), 3, "command");
    ASSERT_TRUE(writer.flush());
    EXPECT_TRUE(has(error_of([&] { RunAdmin(folder.store()).purge(id, "junk"); }), {test::code(ErrorCode::usage), "is training it"}));
  }
  RunAdmin admin(folder.store());
  EXPECT_TRUE(has(error_of([&] { admin.purge(id, "jun"); }), {test::code(ErrorCode::usage), "'jun' is not its name", "junk"}));
  EXPECT_TRUE(has(error_of([&] { RunAdmin(folder.store()).purge(id, ""); }), {test::code(ErrorCode::usage), "'' is not its name"}));
  EXPECT_EQ(RunReader(folder.store()).runs().size(), 2u);
  EXPECT_TRUE(fs::exists(run_folder / "step-000000001.safetensors"));

  const RunAdmin::Purged purged = admin.purge(id, "junk");
  EXPECT_EQ(purged.files, 4);
  EXPECT_EQ(purged.bytes, 18);
  EXPECT_TRUE(purged.left.empty());
  EXPECT_FALSE(fs::exists(run_folder));
  EXPECT_FALSE(fs::exists(folder.file("elsewhere.safetensors")));
  Database db(folder.store(), Database::Mode::read);
  for (const char* table : {"ranks", "memory", "events", "checkpoints"})
    EXPECT_EQ(db.number(std::string("SELECT count(*) FROM ") + table), 0) << table;
  EXPECT_EQ(db.number("SELECT count(*) FROM metrics"), 3);  // of the other run
  EXPECT_EQ(RunReader(folder.store()).runs().at(0).id, keep);
}

}  // namespace
}  // namespace comera
