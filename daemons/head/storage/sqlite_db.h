// A SQLite database file, opened so that every failure is explained, and its prepared statements.
// One thread at a time may use it.
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
    std::string what;  // names the contents in messages: "the head's state"
    bool synchronous_full = true;
    // The schema of format 1, executed when the file is new.
    const char* schema = "";
  };
  // Opens the file in WAL mode with an exclusive lock and writes to it once, so that the file is
  // known to be writable. Errors name file, cause and remedy.
  static Result<std::unique_ptr<SqliteDb>> open(Options options);
  ~SqliteDb();
  SqliteDb(const SqliteDb&) = delete;

  Status exec(const char* sql);
  // Writes a page even if the transaction changes nothing else. Its success shows that writes
  // succeed.
  Status write_mark();
  // Moves the log's pages into the file, so that their space in the log is free again.
  Status checkpoint();
  // Returns the size of the file's free pages: how much can be written before the file grows.
  Result<int64_t> free_bytes();
  // Makes the error for an SQLite result code: kOutOfDisk when the disk is full, else
  // kIo.
  Error error(int rc) const;
  sqlite3* handle() { return db_; }

 private:
  explicit SqliteDb(Options options) : options_(std::move(options)) {}
  Status prepare_file();

  Options options_;
  sqlite3* db_ = nullptr;
};

// A prepared statement. Parameters are bound by position from 1; bound memory must live until
// step() is done. Call reset() before using a statement again; run() does that itself.
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
  // Returns true for a row, false at the end.
  Result<bool> step();
  // Steps to the end, then resets the statement.
  Status run();
  std::string blob(int column) const;
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }

 private:
  SqliteStatement(SqliteDb& db, sqlite3_stmt* statement) : db_(&db), statement_(statement) {}
  SqliteDb* db_;
  sqlite3_stmt* statement_;
};

}  // namespace rt::head
