#include "core/store/sqlite.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "core/base/error.h"

namespace comera {
namespace {

// What to do about it, for the errors a person can do something about.
const char* hint_of(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another program holds the database: close it, or try again";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return "check the permissions of the file and its folder, or use another store: --store FILE";
    case SQLITE_FULL:
      return "free some disk space";
    case SQLITE_IOERR:
      return "check the disk: is it full, or was it removed?";
    case SQLITE_CANTOPEN:
      return "check that the folder exists and may be written, or use another store: --store FILE";
    case SQLITE_CORRUPT:
      return "nothing was changed; copy the readable rows into a new store: comera runs salvage FILE";
    case SQLITE_NOTADB:
      return "nothing was changed; restore a backup of it, or name another file: --store FILE";
    default:
      return "";
  }
}

[[noreturn]] void fail_with(sqlite3* db, int code, const std::string& path, const std::string& doing) {
  std::string why = db ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const int extended = db ? sqlite3_extended_errcode(db) : code;
  if ((extended & 0xff) == SQLITE_IOERR) why += std::string(" (") + std::strerror(db ? sqlite3_system_errno(db) : 0) + ")";
  throw DatabaseError(extended, "cannot " + doing + " " + path, why, hint_of(extended));
}

// For only_reads(): reading tables and calling functions; neither ATTACH nor PRAGMA nor load_extension().
int authorize_read(void*, int action, const char*, const char* function, const char*, const char*) {
  if (action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE) return SQLITE_OK;
  if (action == SQLITE_FUNCTION) return function && sqlite3_stricmp(function, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
  return SQLITE_DENY;
}

// A file name as a URI, for immutable=1.
std::string uri_of(const std::string& path, const char* options) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string uri = "file:";
  for (unsigned char c : std::filesystem::absolute(path).string())
    if (std::isalnum(c) || std::strchr("/._-~", c))
      uri += static_cast<char>(c);
    else
      uri += {'%', kHex[c >> 4], kHex[c & 15]};
  return uri + options;
}

}  // namespace

bool DatabaseError::locked() const { return (code_ & 0xff) == SQLITE_BUSY || (code_ & 0xff) == SQLITE_LOCKED; }
bool DatabaseError::damaged() const { return (code_ & 0xff) == SQLITE_CORRUPT || (code_ & 0xff) == SQLITE_NOTADB; }

// ---- Database ----------------------------------------------------------------------------------------------------

Database::Database(const std::string& path, Mode mode, double busy_s) : path_(path) {
  struct stat info {};
  const bool there = ::stat(path.c_str(), &info) == 0;
  if (!there && mode != Mode::create)
    throw Error(ErrorCode::not_found, "there is no database " + path, "", "start a run to create it, or name another one: --store FILE");
  if (there && S_ISDIR(info.st_mode)) throw Error(ErrorCode::storage, "cannot open " + path, "it is a folder", "name a file: --store FILE");
  const int flags = SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX |
                    (is_read(mode)         ? SQLITE_OPEN_READONLY
                     : mode == Mode::write ? SQLITE_OPEN_READWRITE
                                           : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  const auto open = [&](const std::string& name, int more) {
    const int code = sqlite3_open_v2(name.c_str(), &db_, flags | more, nullptr);
    if (code != SQLITE_OK) return code;
    sqlite3_busy_timeout(db_, static_cast<int>(busy_s * 1000));
    return sqlite3_exec(db_, "SELECT count(*) FROM sqlite_master", nullptr, nullptr, nullptr);  // opening alone reads nothing
  };
  struct stat log {};
  const bool nobody_writes = ::stat((path + "-wal").c_str(), &log) != 0 || log.st_size == 0;
  const auto as_it_is = [&] { return open(uri_of(path, "?immutable=1"), SQLITE_OPEN_URI); };
  int code = mode == Mode::look && nobody_writes ? as_it_is() : open(path, 0);
  // A WAL database in a folder that may not be written, or on a disk that is full, cannot be opened the usual way. Without
  // anything in a -wal file nobody is writing it, and it can be read as it is.
  const int basic = code & 0xff;
  const bool no_room = basic == SQLITE_FULL || (basic == SQLITE_IOERR && sqlite3_system_errno(db_) == ENOSPC);
  if (is_read(mode) && (basic == SQLITE_CANTOPEN || basic == SQLITE_READONLY || no_room) && nobody_writes) {
    sqlite3_close_v2(db_);
    db_ = nullptr;
    code = as_it_is();
  }
  try {
    if (code != SQLITE_OK) fail_with(db_, code, path_, "open");
    if (!is_read(mode) && sqlite3_db_readonly(db_, "main") == 1)  // SQLite falls back to reading without a word
      throw Error(ErrorCode::storage, "cannot write " + path_, "it may only be read", hint_of(SQLITE_READONLY));
    if (::stat(path.c_str(), &info) == 0) {
      inode_ = info.st_ino;
      device_ = info.st_dev;
    }
  } catch (...) {
    sqlite3_close_v2(db_);
    throw;
  }
}

Database::~Database() { sqlite3_close_v2(db_); }

void Database::fail(const std::string& doing) const { fail_with(db_, sqlite3_errcode(db_), path_, doing); }

void Database::run(const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail("change");
}

int64_t Database::number(const std::string& sql) {
  Statement statement(*this, sql);
  CHECK(statement.step(), sql);
  return statement.integer(0);
}

std::string Database::text(const std::string& sql) {
  Statement statement(*this, sql);
  CHECK(statement.step(), sql);
  return statement.text(0);
}

bool Database::has_table(const std::string& name) {
  Statement statement(*this, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?");
  return statement.bind(name).step();
}

int64_t Database::changed() const { return sqlite3_changes64(db_); }

bool Database::file_is_there() const {
  struct stat info {};
  return ::stat(path_.c_str(), &info) == 0 && info.st_ino == inode_ && info.st_dev == device_;
}

void Database::copy_to(const std::string& path) const {
  sqlite3* to = nullptr;
  int code = sqlite3_open_v2(path.c_str(), &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  if (code == SQLITE_OK)
    if (sqlite3_backup* copy = sqlite3_backup_init(to, "main", db_, "main")) {
      while ((code = sqlite3_backup_step(copy, -1)) == SQLITE_BUSY || code == SQLITE_LOCKED) sqlite3_sleep(20);
      sqlite3_backup_finish(copy);
    }
  try {
    if (sqlite3_errcode(to) != SQLITE_OK) fail_with(to, code, path, "write the copy");
  } catch (...) {
    sqlite3_close_v2(to);
    ::unlink(path.c_str());
    throw;
  }
  sqlite3_close_v2(to);
}

void Database::only_reads() { sqlite3_set_authorizer(db_, authorize_read, nullptr); }
void Database::keeps_log() { sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }

std::optional<std::string> why_not_one_read(const Database& db, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(db.handle(), sql.c_str(), -1, &statement, &rest);
  std::optional<std::string> why;
  if (code == SQLITE_AUTH)
    why = "only reading is allowed: SELECT";
  else if (code != SQLITE_OK)
    why = sqlite3_errmsg(db.handle());
  else if (!statement)
    why = "it is empty";
  else if (!sqlite3_stmt_readonly(statement))
    why = "only reading is allowed: SELECT";
  sqlite3_finalize(statement);
  if (why) return why;
  // After the statement only white space, comments and ';' may follow: they prepare to nothing.
  while (rest && *rest) {
    const char* before = rest;
    if (sqlite3_prepare_v2(db.handle(), before, -1, &statement, &rest) != SQLITE_OK || statement) {
      sqlite3_finalize(statement);
      return "only one statement is allowed";
    }
    if (rest == before) break;
  }
  return why;
}

// ---- Statement ---------------------------------------------------------------------------------------------------

Statement::Statement(const Database& db, const std::string& sql) : db_(&db) {
  if (sqlite3_prepare_v2(db.handle(), sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) db.fail("read");
}
Statement::~Statement() { sqlite3_finalize(statement_); }
Statement::Statement(Statement&& other) noexcept : db_(other.db_), statement_(std::exchange(other.statement_, nullptr)) {}

void Statement::check(int code, const char* doing) const {
  if (code != SQLITE_OK) db_->fail(doing);
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) {
    ++db_->rows_given_;
    return true;
  }
  if (code == SQLITE_DONE) return false;
  const bool reads = sqlite3_stmt_readonly(statement_);
  try {
    db_->fail(reads ? "read" : "write");
  } catch (...) {
    sqlite3_reset(statement_);  // after the message was taken
    throw;
  }
}

Statement& Statement::bind_row(const Statement& from) {
  reset();
  for (int i = 0; i < from.columns(); ++i) check(sqlite3_bind_value(statement_, i + 1, sqlite3_column_value(from.statement_, i)), "bind");
  return *this;
}

void Statement::run() {
  while (step()) {
  }
  reset();
}

void Statement::reset() { sqlite3_reset(statement_); }  // repeats the error of step(): told there

void Statement::bind_one(int index, int64_t value) { check(sqlite3_bind_int64(statement_, index, value), "bind a value for"); }
void Statement::bind_one(int index, double value) {
  check(std::isnan(value) ? sqlite3_bind_null(statement_, index) : sqlite3_bind_double(statement_, index, value), "bind a value for");
}
void Statement::bind_one(int index, const std::string& value) {
  check(sqlite3_bind_text64(statement_, index, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8), "bind a value for");
}

int Statement::columns() const { return sqlite3_column_count(statement_); }
std::string Statement::name(int column) const { return sqlite3_column_name(statement_, column); }
int Statement::type(int column) const { return sqlite3_column_type(statement_, column); }
int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::real(int column) const {
  return is_null(column) ? std::numeric_limits<double>::quiet_NaN() : sqlite3_column_double(statement_, column);
}
std::string Statement::text(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);  // not as a text: a blob keeps its bytes
  return data ? std::string(static_cast<const char*>(data), static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : "";
}

// ---- Transaction -------------------------------------------------------------------------------------------------

Transaction::Transaction(Database& db, Kind kind) : db_(db) { db_.run(kind == Kind::write ? "BEGIN IMMEDIATE" : "BEGIN"); }

Transaction::~Transaction() {
  // SQLite itself has rolled back after some errors (disk full): then there is nothing left to do.
  if (open_ && !sqlite3_get_autocommit(db_.handle())) sqlite3_exec(db_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  db_.run("COMMIT");
  open_ = false;
}

}  // namespace comera
