// SQLite as three small RAII classes. Constructors throw, destructors never do. Errors: Error(not_found) when a file
// that must exist does not, Error(storage) for everything else, with what SQLite says and what to do.
// Thread: one connection and its statements belong to one thread at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace comera {

// What SQLite itself says. Error(storage).
class DatabaseError : public Error {
 public:
  DatabaseError(int code, const std::string& what, const std::string& why, const std::string& hint)
      : Error(ErrorCode::storage, what, why, hint), code_(code) {}
  bool damaged() const;  // the file is, or it is no database
  bool locked() const;   // by another connection

 private:
  int code_;  // SQLite's
};

class Database {
 public:
  enum class Mode {
    read,    // read-only; the file must exist
    look,    // the same, and no file is made next to one that nobody writes
    write,   // the file must exist
    create,  // created when it does not exist
  };
  static bool is_read(Mode mode) { return mode == Mode::read || mode == Mode::look; }
  // `busy_s`: how long a call waits for another connection's lock.
  Database(const std::string& path, Mode mode, double busy_s = 5);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& path() const { return path_; }
  // Statements without results, separated by ';'.
  void run(const std::string& sql);
  // First column of the first row of a query that gives one.
  int64_t number(const std::string& sql);
  std::string text(const std::string& sql);
  bool has_table(const std::string& name);
  int64_t changed() const;                            // rows of the last INSERT, UPDATE or DELETE
  int64_t rows_given() const { return rows_given_; }  // by all its statements so far
  // The file at path() is still the one that was opened (not deleted, not replaced).
  bool file_is_there() const;
  // Copies the whole database, as of now, into a new file, also while others write. Not inside a transaction.
  void copy_to(const std::string& path) const;
  // From now on statements that do more than read are refused when they are prepared.
  void only_reads();
  // What lies in the -wal file stays there when this connection is closed: whoever only looks changes no file.
  void keeps_log();

  sqlite3* handle() const { return db_; }
  [[noreturn]] void fail(const std::string& doing) const;

 private:
  std::string path_;
  sqlite3* db_ = nullptr;
  uint64_t inode_ = 0, device_ = 0;
  friend class Statement;
  mutable int64_t rows_given_ = 0;
};

// A prepared statement. bind() counts parameters from 1 in the order of calls; column(i) counts from 0.
class Statement {
 public:
  Statement(const Database& db, const std::string& sql);
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Binds all parameters in order; values of an earlier run are replaced.
  template <class... Values>
  Statement& bind(const Values&... values) {
    reset();
    int index = 0;
    (bind_one(++index, values), ...);
    return *this;
  }
  bool step();  // true: there is a row
  void run();   // bind(...).run(): steps to the end, ready for the next bind
  // Binds the parameters to the columns of the row that `from` is at, whatever their types are.
  Statement& bind_row(const Statement& from);
  void reset();

  int columns() const;
  std::string name(int column) const;
  int type(int column) const;  // 1 integer, 2 real, 3 text, 4 blob, 5 null: SQLite's numbers
  bool is_null(int column) const { return type(column) == 5; }
  int64_t integer(int column) const;
  double real(int column) const;  // NULL is NaN: see schema.h
  std::string text(int column) const;

 private:
  void bind_one(int index, int64_t value);
  void bind_one(int index, int value) { bind_one(index, static_cast<int64_t>(value)); }
  void bind_one(int index, bool value) { bind_one(index, static_cast<int64_t>(value)); }
  void bind_one(int index, double value);  // NaN is bound as NULL: see schema.h
  void bind_one(int index, const std::string& value);
  void bind_one(int index, const char* value) { bind_one(index, std::string(value)); }
  void check(int code, const char* doing) const;

  const Database* db_;
  sqlite3_stmt* statement_ = nullptr;
};

// BEGIN ... COMMIT. Rolls back when it is destroyed before commit().
class Transaction {
 public:
  enum class Kind { read, write };  // write takes the write lock at once, so that it cannot be refused in the middle
  explicit Transaction(Database& db, Kind kind = Kind::write);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& db_;
  bool open_ = true;
};

// Whether `sql` is exactly one statement that only reads; else the reason. `db` must be only_reads().
std::optional<std::string> why_not_one_read(const Database& db, const std::string& sql);

}  // namespace comera
