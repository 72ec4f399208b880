#include "core/store/sqlite.h"

#include <sqlite3.h>

#include <filesystem>

#include "core/base/error.h"

namespace comera {
namespace fs = std::filesystem;

Database::Database(const std::string& path, Mode mode, int busy_ms) : path_(path) {
  std::error_code problem;
  if (mode == Mode::read && !fs::exists(path, problem))
    throw Error(ErrorCode::not_found, "no database " + path, "nothing has been stored there yet", "train something first, or name another one with --store");
  if (mode == Mode::write && !fs::path(path).parent_path().empty()) {
    fs::create_directories(fs::path(path).parent_path(), problem);
    if (problem)
      throw Error(ErrorCode::storage, "cannot create " + fs::path(path).parent_path().string(), problem.message(), "choose another place with --store");
  }
  const int flags = mode == Mode::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (sqlite3_open_v2(path.c_str(), &handle_, flags | SQLITE_OPEN_NOMUTEX, nullptr) != SQLITE_OK) {
    const std::string why = handle_ ? sqlite3_errmsg(handle_) : "out of memory";
    sqlite3_close_v2(handle_);
    throw Error(ErrorCode::storage, "cannot open the database " + path, why, "check the path and its permissions, or use another --store");
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, busy_ms);
  try {
    if (mode == Mode::write) run("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;");
    number("SELECT count(*) FROM sqlite_master");  // a file that is no database shows here, not in the middle of a run
  } catch (...) {
    sqlite3_close_v2(handle_);
    throw;
  }
}

Database::~Database() { sqlite3_close_v2(handle_); }

void Database::fail(const std::string& doing) const {
  const int code = sqlite3_errcode(handle_);
  const std::string text = sqlite3_errmsg(handle_);
  switch (code & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      throw Error(ErrorCode::storage, "the database " + path_ + " is damaged or is no database", text, "keep the file; use another --store, or recover with: sqlite3 FILE .recover");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Error(ErrorCode::storage, "the database " + path_ + " is locked", "another program is writing and did not finish in time", "close it, or use another --store");
    case SQLITE_READONLY:
    case SQLITE_PERM:
      throw Error(ErrorCode::storage, "the database " + path_ + " is read-only", text, "check its permissions, or use another --store");
    case SQLITE_FULL:
      throw Error(ErrorCode::storage, "no space for the database " + path_, text, "free some disk space; nothing that was stored is lost");
    default:
      throw Error(ErrorCode::storage, doing + " " + path_ + " failed", text, "check the file and the disk");
  }
}

void Database::run(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail("writing to");
}

int64_t Database::number(const std::string& sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

int64_t Database::changes() const { return sqlite3_changes64(handle_); }

void Database::allow_only_reading() {
  sqlite3_set_authorizer(
      handle_,
      [](void*, int action, const char*, const char* second, const char*, const char*) {
        switch (action) {
          case SQLITE_SELECT:
          case SQLITE_READ:
          case SQLITE_RECURSIVE: return SQLITE_OK;
          case SQLITE_FUNCTION: return second && std::string(second) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
          default: return SQLITE_DENY;
        }
      },
      nullptr);
}

void Database::copy_to(const std::string& path) {
  Statement statement(*this, "VACUUM INTO ?");
  statement.bind(path).run();
}

Statement::Statement(Database& database, const std::string& sql) : database_(database) {
  if (sqlite3_prepare_v2(database.handle_, sql.c_str(), -1, &handle_, nullptr) != SQLITE_OK) {
    const int code = sqlite3_errcode(database.handle_) & 0xff;
    const std::string text = sqlite3_errmsg(database.handle_);
    if (code == SQLITE_AUTH) throw Error(ErrorCode::usage, "only reading statements are allowed", text, "begin with SELECT");
    if (code == SQLITE_ERROR) throw Error(ErrorCode::usage, "the query is not valid SQL", text, "the tables are described in README, \"The store\"");
    database.fail("reading");
  }
  if (!handle_) throw Error(ErrorCode::usage, "the query is empty", "", "for example: SELECT name, status FROM runs");
}

Statement::~Statement() { sqlite3_finalize(handle_); }

Statement& Statement::bind(int64_t value) {
  sqlite3_bind_int64(handle_, next_++, value);
  return *this;
}
Statement& Statement::bind(double value) {
  sqlite3_bind_double(handle_, next_++, value);
  return *this;
}
Statement& Statement::bind(const std::string& value) {
  sqlite3_bind_text(handle_, next_++, value.c_str(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  return *this;
}
Statement& Statement::bind_null() {
  sqlite3_bind_null(handle_, next_++);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.fail("using");
  return false;
}

void Statement::run() {
  while (step()) {
  }
  reset();
}

void Statement::reset() {
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
  next_ = 1;
}

int Statement::columns() const { return sqlite3_column_count(handle_); }
std::string Statement::column_name(int column) const { return sqlite3_column_name(handle_, column); }
bool Statement::is_null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }
int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }
double Statement::real(int column) const { return sqlite3_column_double(handle_, column); }
std::string Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(handle_, column);
  return text ? std::string(reinterpret_cast<const char*>(text), static_cast<size_t>(sqlite3_column_bytes(handle_, column))) : "";
}
Statement::Type Statement::type(int column) const {
  switch (sqlite3_column_type(handle_, column)) {
    case SQLITE_INTEGER: return Type::integer;
    case SQLITE_FLOAT: return Type::real;
    case SQLITE_TEXT: return Type::text;
    case SQLITE_BLOB: return Type::blob;
    default: return Type::null;
  }
}

Transaction::~Transaction() {
  if (done_) return;
  try {
    database_.run("ROLLBACK");
  } catch (...) {  // SQLite has rolled back by itself (disk full): nothing is left to undo
  }
}

void Transaction::commit() {
  database_.run("COMMIT");
  done_ = true;
}

}  // namespace comera
