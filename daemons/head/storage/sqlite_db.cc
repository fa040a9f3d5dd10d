#include "daemons/head/storage/sqlite_db.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/trusted_directory.h"

namespace rt::head {
namespace {

constexpr int kFormat = 1;

// Refuses files that another user has put into the directory. SQLite reads all of these, and takes
// over what the logs contain.
Status check_owners(const std::string& path, const std::string& what) {
  const DirectoryUse use = {what.c_str(), "give another --state-dir"};
  for (const char* suffix : {"", "-wal", "-shm", "-journal"})
    RT_TRY(check_file_owner(path + suffix, use));
  return {};
}

}  // namespace

Result<std::unique_ptr<SqliteDb>> SqliteDb::open(Options options) {
  std::unique_ptr<SqliteDb> db(new SqliteDb(std::move(options)));
  RT_TRY(check_owners(db->options_.path, db->options_.what));
  // SQLite would make the file, and its log with it, readable for everybody.
  if (int fd = ::open(db->options_.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); fd >= 0)
    ::close(fd);
  int rc =
      sqlite3_open_v2(db->options_.path.c_str(), &db->db_,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (rc != SQLITE_OK) return db->error(rc);
  sqlite3_extended_result_codes(db->db_, 1);
  RT_TRY(db->prepare_file());
  // In a directory where all users can write, one may have added a file since the first look.
  RT_TRY(check_owners(db->options_.path, db->options_.what));
  return db;
}

SqliteDb::~SqliteDb() { sqlite3_close_v2(db_); }

Status SqliteDb::prepare_file() {
  // A head that was killed a moment ago may hold its lock for a little longer.
  sqlite3_busy_timeout(db_, 2000);
  // The exclusive lock comes before WAL: then the WAL index lives in this process's memory and no
  // other process can write.
  RT_TRY(exec("PRAGMA locking_mode=EXCLUSIVE"));
  RT_TRY(exec("PRAGMA journal_mode=WAL"));
  RT_TRY(exec(options_.synchronous_full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL"));
  // 500 KiB are enough, because the kernel caches the file as well.
  RT_TRY(exec("PRAGMA cache_size=-500"));
  RT_TRY(exec("BEGIN IMMEDIATE"));
  int64_t version = 0;
  {
    RT_ASSIGN(auto query, SqliteStatement::prepare(*this, "PRAGMA user_version"));
    RT_ASSIGN(bool row, query.step());
    if (row) version = query.integer(0);
  }
  if (version > kFormat)
    return make_error(Code::kUnsupported,
                      fmt::format("{} in {} was written by a newer release (format {}, this one "
                                  "knows {}); use that release or another --state-dir",
                                  options_.what, options_.path, version, kFormat));
  if (version == 0) RT_TRY(exec(options_.schema));
  // Written at every start, so that a file that cannot be written is found here and not at the
  // first job.
  RT_TRY(exec("CREATE TABLE IF NOT EXISTS opened(at INTEGER)"));
  RT_TRY(exec("DELETE FROM opened"));
  RT_TRY(exec("INSERT INTO opened VALUES (strftime('%s','now'))"));
  RT_TRY(exec(fmt::format("PRAGMA user_version={}", kFormat).c_str()));
  return exec("COMMIT");
}

Status SqliteDb::exec(const char* sql) {
  int rc = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return error(rc);
  return {};
}

Status SqliteDb::write_mark() {
  return exec("UPDATE opened SET at = max(at + 1, CAST(strftime('%s','now') AS INTEGER))");
}

Status SqliteDb::checkpoint() {
  int rc = sqlite3_wal_checkpoint_v2(db_, nullptr, SQLITE_CHECKPOINT_RESTART, nullptr, nullptr);
  if (rc != SQLITE_OK) return error(rc);
  return {};
}

Result<int64_t> SqliteDb::free_bytes() {
  RT_ASSIGN(
      auto query,
      SqliteStatement::prepare(
          *this, "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size"));
  RT_TRY(query.step());
  return query.integer(0);
}

Error SqliteDb::error(int rc) const {
  int system = db_ ? sqlite3_system_errno(db_) : errno;
  std::string cause = db_ ? sqlite3_errmsg(db_) : sqlite3_errstr(rc);
  int primary = rc & 0xff;
  bool full = primary == SQLITE_FULL || (primary == SQLITE_IOERR &&
                                         (system == ENOSPC || system == EDQUOT || system == EFBIG));
  if (system != 0 && !full) cause += fmt::format(" ({})", std::strerror(system));
  const std::string& path = options_.path;
  if (full) {
    const char* why = system == EFBIG    ? "the file may not grow further (file size limit)"
                      : system == EDQUOT ? "the disk quota is used up"
                                         : "no space left on its file system";
    return make_error(
        Code::kOutOfDisk,
        fmt::format(
            "{} cannot be written to {}: {}. Free space there, then try again; nothing was changed",
            options_.what, path, why));
  }
  switch (primary) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return make_error(
          Code::kIo,
          fmt::format(
              "{} in {} is damaged: {}. Move the file away to start without it, or put a copy back",
              options_.what, path, cause));
    case SQLITE_BUSY:
      return make_error(Code::kIo,
                        fmt::format("{} in {} is in use by another process: is another head "
                                    "running on it? Stop that one or give another --state-dir",
                                    options_.what, path));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return make_error(Code::kIo,
                        fmt::format("{} cannot be opened for writing at {}: {}. Make the directory "
                                    "exist and writable, or give another --state-dir",
                                    options_.what, path, cause));
    default:
      return make_error(
          Code::kIo,
          fmt::format("{} cannot be written to {}: {}. Check the disk; nothing was changed",
                      options_.what, path, cause));
  }
}

Result<SqliteStatement> SqliteStatement::prepare(SqliteDb& db, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  int rc = sqlite3_prepare_v2(db.handle(), sql, -1, &statement, nullptr);
  if (rc != SQLITE_OK) return db.error(rc);
  return SqliteStatement(db, statement);
}

Result<bool> SqliteStatement::step() {
  int rc = sqlite3_step(statement_);
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  Error error = db_->error(rc);
  sqlite3_reset(statement_);
  return error;
}

Status SqliteStatement::run() {
  for (;;) {
    auto row = step();
    if (!row) return row.error();
    if (!*row) break;
  }
  sqlite3_reset(statement_);
  return {};
}

std::string SqliteStatement::blob(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  return {static_cast<const char*>(data ? data : ""),
          static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

}  // namespace rt::head
