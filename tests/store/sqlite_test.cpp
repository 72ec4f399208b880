// The thin SQLite classes: what they throw, what they roll back, how numbers that are none travel.
#include <cmath>
#include <limits>

#include "tests/store/support.h"

namespace comera {
namespace {

using test::error_of;
using test::Folder;
using test::has;

TEST(Sqlite, MissingFileIsNotFoundAndNotCreated) {
  Folder folder;
  for (const auto mode : {Database::Mode::read, Database::Mode::write}) {
    EXPECT_TRUE(
        has(error_of([&] { Database db(folder.store(), mode); }), {test::code(ErrorCode::not_found), "no database", folder.store()}));
    EXPECT_FALSE(std::filesystem::exists(folder.store()));
  }
}

TEST(Sqlite, FolderAndMissingFolderAreStorageErrors) {
  Folder folder;
  EXPECT_TRUE(
      has(error_of([&] { Database db(folder.path(), Database::Mode::create); }), {test::code(ErrorCode::storage), "it is a folder"}));
  EXPECT_TRUE(has(error_of([&] { Database db(folder.file("no/where.db"), Database::Mode::create); }),
                  {test::code(ErrorCode::storage), "unable to open"}));
}

TEST(Sqlite, ValuesComeBack) {
  Folder folder;
  Database db(folder.store(), Database::Mode::create);
  db.run("CREATE TABLE t(a)");
  const double infinity = std::numeric_limits<double>::infinity();
  Statement insert(db, "INSERT INTO t VALUES(?)");
  insert.bind(int64_t{1} << 62).run();
  insert.bind(0.1).run();
  insert.bind(std::nan("")).run();
  insert.bind(-infinity).run();
  insert.bind(std::string("a\0b\xc3\xa9", 5)).run();
  Statement rows(db, "SELECT a FROM t ORDER BY rowid");
  ASSERT_TRUE(rows.step());
  EXPECT_EQ(rows.integer(0), int64_t{1} << 62);
  ASSERT_TRUE(rows.step());
  EXPECT_EQ(rows.real(0), 0.1);
  ASSERT_TRUE(rows.step());
  EXPECT_TRUE(rows.is_null(0));
  EXPECT_TRUE(std::isnan(rows.real(0)));
  ASSERT_TRUE(rows.step());
  EXPECT_EQ(rows.real(0), -infinity);
  ASSERT_TRUE(rows.step());
  EXPECT_EQ(rows.text(0), std::string("a\0b\xc3\xa9", 5));
  EXPECT_FALSE(rows.step());
}

TEST(Sqlite, TransactionRollsBackUnlessCommitted) {
  Folder folder;
  Database db(folder.store(), Database::Mode::create);
  db.run("CREATE TABLE t(a)");
  {
    Transaction transaction(db);
    db.run("INSERT INTO t VALUES(1)");
  }
  EXPECT_EQ(db.number("SELECT count(*) FROM t"), 0);
  {
    Transaction transaction(db);
    db.run("INSERT INTO t VALUES(1)");
    transaction.commit();
  }
  EXPECT_EQ(db.number("SELECT count(*) FROM t"), 1);
}

TEST(Sqlite, ErrorNamesFileAndReason) {
  Folder folder;
  Database db(folder.store(), Database::Mode::create);
  db.run("CREATE TABLE t(a UNIQUE)");
  db.run("INSERT INTO t VALUES(1)");
  EXPECT_TRUE(has(error_of([&] { Statement(db, "INSERT INTO t VALUES(?)").bind(1).run(); }),
                  {test::code(ErrorCode::storage), folder.store(), "UNIQUE constraint"}));
  EXPECT_TRUE(has(error_of([&] { Statement(db, "SELEC 1"); }), {test::code(ErrorCode::storage), "syntax error"}));
}

TEST(Sqlite, NoticesThatItsFileIsGone) {
  Folder folder;
  Database db(folder.store(), Database::Mode::create);
  db.run("CREATE TABLE t(a)");
  EXPECT_TRUE(db.file_is_there());
  std::filesystem::remove(folder.store());
  EXPECT_FALSE(db.file_is_there());
  test::write_text(folder.store(), "another");
  EXPECT_FALSE(db.file_is_there());
}

}  // namespace
}  // namespace comera
