// A SQLite database file: opening with every failure explained, and statements. Used by one thread
// at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"

namespace rt::head {

class SqliteDb {
 public:
  struct Options {
    std::string path;
    std::string what;  // for messages: "the head's state"
    bool synchronous_full = true;
    const char* schema = "";  // of format 1, run when the file is new
  };
  // WAL, exclusive lock, known to be writable. Errors name file, cause and remedy.
  static Result<std::unique_ptr<SqliteDb>> open(Options options);
  ~SqliteDb();
  SqliteDb(const SqliteDb&) = delete;

  Status exec(const char* sql);
  // Writes a page, also where nothing else in the transaction would: that it goes well shows that
  // writes do.
  Status write_mark();
  // The log's pages into the file, so that their place in the log is free again.
  Status checkpoint();
  // Of the file's pages: what can be written before it grows.
  Result<int64_t> free_bytes();
  // kOutOfDisk or kIo from the last SQLite result.
  Error error(int rc) const;
  sqlite3* handle() { return db_; }

 private:
  explicit SqliteDb(Options options) : options_(std::move(options)) {}
  Status prepare_file();

  Options options_;
  sqlite3* db_ = nullptr;
};

// A prepared statement, reset before each use. Binds by position from 1; bound memory lives until
// step() is done.
class SqliteStatement {
 public:
  static Result<SqliteStatement> prepare(SqliteDb& db, const char* sql);
  SqliteStatement(SqliteStatement&& other) noexcept
      : db_(other.db_), statement_(std::exchange(other.statement_, nullptr)) {}
  ~SqliteStatement() { sqlite3_finalize(statement_); }

  void reset() { sqlite3_reset(statement_); }
  void bind(int index, std::string_view blob) {
    sqlite3_bind_blob64(statement_, index, blob.data() ? blob.data() : "", blob.size(),
                        SQLITE_STATIC);
  }
  void bind(int index, int64_t value) { sqlite3_bind_int64(statement_, index, value); }
  // True: a row; false: done.
  Result<bool> step();
  // step() until done, then reset().
  Status run();
  std::string blob(int column) const;
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }

 private:
  SqliteStatement(SqliteDb& db, sqlite3_stmt* statement) : db_(&db), statement_(statement) {}
  SqliteDb* db_;
  sqlite3_stmt* statement_;
};

}  // namespace rt::head
