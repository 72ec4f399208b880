// Thin RAII over SQLite; sqlite.cpp is the only file that includes sqlite3.h. A connection and its statements belong
// to one thread. Constructors throw Error(storage | not_found); destructors never throw.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace comera {

class Statement;

class Database {
 public:
  enum class Mode { read, write };
  // write: creates the file and its folder when they are missing. WAL, foreign keys, `busy_ms` of patience with locks.
  Database(const std::string& path, Mode mode, int busy_ms = 5000);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const std::string& sql);  // one or more statements without results
  int64_t number(const std::string& sql);
  int64_t changes() const;
  // Only reading statements pass from here on (comera query).
  void allow_only_reading();
  // A consistent copy of the whole database, also while others write.
  void copy_to(const std::string& path);
  const std::string& path() const { return path_; }

 private:
  friend class Statement;
  [[noreturn]] void fail(const std::string& doing) const;
  std::string path_;
  sqlite3* handle_ = nullptr;
};

class Statement {
 public:
  Statement(Database& database, const std::string& sql);
  ~Statement();
  Statement(Statement&& other) noexcept : database_(other.database_), handle_(other.handle_) { other.handle_ = nullptr; }
  Statement& operator=(Statement&&) = delete;

  // Parameters in order; then step() until false, or run().
  Statement& bind(int64_t value);
  Statement& bind(double value);
  Statement& bind(const std::string& value);
  Statement& bind_null();
  bool step();  // true: a row is there
  void run();   // to the end, then ready to be bound again
  void reset();

  int columns() const;
  std::string column_name(int column) const;
  bool is_null(int column) const;
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  enum class Type { null, integer, real, text, blob };
  Type type(int column) const;

 private:
  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
  int next_ = 1;
};

// Rolled back unless committed.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) { database_.run("BEGIN IMMEDIATE"); }
  ~Transaction();
  void commit();

 private:
  Database& database_;
  bool done_ = false;
};

}  // namespace comera
