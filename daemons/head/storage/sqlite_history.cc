#include "daemons/head/storage/sqlite_history.h"

#include <algorithm>
#include <future>

#include "common/base/log.h"

namespace rt::head {
namespace {

constexpr char kHistorySchema[] =
    "CREATE TABLE batches(row INTEGER PRIMARY KEY AUTOINCREMENT, job BLOB NOT NULL, min_us INTEGER "
    "NOT NULL, max_us INTEGER NOT NULL,"
    " count INTEGER NOT NULL, bytes INTEGER NOT NULL, packed BLOB NOT NULL);"
    "CREATE INDEX batches_of_job ON batches(job, row);"
    "CREATE TABLE totals(dropped INTEGER NOT NULL);"
    "INSERT INTO totals VALUES (0);"
    "CREATE TABLE sources(source BLOB PRIMARY KEY, number INTEGER NOT NULL);"
    // Digests have a table of their own, so that reading all of them touches no page of the
    // batches.
    "CREATE TABLE digests(row INTEGER PRIMARY KEY, digest BLOB NOT NULL)";

// Overhead of a row beyond its packed events, so that many small batches are bounded, too.
constexpr int64_t kRowBytes = 100;
constexpr int64_t kDefaultReplyBytes = 16 << 20, kMaxReplyBytes = 64 << 20;

// The size of a transaction, and the size of the log at which it is moved into the file. The
// reserve must cover both when the file cannot grow.
constexpr int64_t kTransactionBytes = 1 << 20;
constexpr char kCheckpointPages[] = "PRAGMA wal_autocheckpoint=256";
constexpr int64_t kReserveBytes = 4 << 20;
// The least that is erased at a time to make room, because erasing costs more than writing.
constexpr int64_t kRoomBytes = 256 << 10;
// Size of the pages that a transaction changes besides those of its rows.
constexpr int64_t kPagesBytes = 64 << 10;

int64_t bytes_of(const proto::TaskEventBatch& batch) {
  return static_cast<int64_t>(batch.packed().size() + batch.digest().size()) + kRowBytes;
}

}  // namespace

Result<std::unique_ptr<SqliteHistory>> SqliteHistory::open(const std::string& path,
                                                           const Settings& settings,
                                                           DiskThread& disk, PostTask post) {
  RT_ASSIGN(auto db, SqliteDb::open({path, "the task history", false, kHistorySchema}));
  RT_ASSIGN(auto insert,
            SqliteStatement::prepare(*db,
                                     "INSERT INTO batches(job, min_us, max_us, count, bytes, "
                                     "packed) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
  RT_ASSIGN(auto save_number,
            SqliteStatement::prepare(
                *db, "INSERT OR REPLACE INTO sources(source, number) VALUES (?1, ?2)"));
  RT_ASSIGN(auto insert_digest,
            SqliteStatement::prepare(
                *db, "INSERT INTO digests(row, digest) VALUES (last_insert_rowid(), ?1)"));
  RT_TRY(db->exec(kCheckpointPages));
  Statements statements{std::move(insert), std::move(insert_digest), std::move(save_number)};
  std::unique_ptr<SqliteHistory> history(new SqliteHistory(std::move(db), std::move(statements),
                                                           path, settings, disk, std::move(post)));
  RT_TRY(history->load_totals());
  return history;
}

SqliteHistory::SqliteHistory(std::unique_ptr<SqliteDb> db, Statements statements,
                             const std::string& path, const Settings& settings, DiskThread& disk,
                             PostTask post)
    : db_(std::move(db)),
      statements_(std::move(statements)),
      max_bytes_(settings.task_events_max_bytes),
      min_bytes_(settings.task_events_min_bytes),
      queue_bytes_(settings.task_events_queue_bytes),
      reserve_(path + ".reserve", kReserveBytes),
      disk_(disk),
      post_(std::move(post)) {}

SqliteHistory::~SqliteHistory() {
  std::promise<void> drained;
  disk_.post([&drained] { drained.set_value(); });
  drained.get_future().wait();
}

Status SqliteHistory::load_totals() {
  RT_ASSIGN(auto sum,
            SqliteStatement::prepare(*db_, "SELECT COALESCE(SUM(bytes), 0) FROM batches"));
  RT_TRY(sum.step());
  kept_bytes_ = sum.integer(0);
  RT_ASSIGN(auto dropped,
            SqliteStatement::prepare(*db_, "SELECT COALESCE(SUM(dropped), 0) FROM totals"));
  RT_TRY(dropped.step());
  dropped_ = dropped_on_disk_ = dropped.integer(0);
  RT_ASSIGN(auto sources, SqliteStatement::prepare(*db_, "SELECT source, number FROM sources"));
  for (;;) {
    RT_ASSIGN(bool row, sources.step());
    if (!row) return {};
    numbers_[std::string(sources.blob(0))] = sources.integer(1);
  }
}

void SqliteHistory::append(proto::TaskEventBatch batch, std::string source,
                           std::function<void(Result<Outcome>)> done) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    int64_t bytes = bytes_of(batch);
    if (pending_bytes_ + bytes > queue_bytes_) {
      overflow_ += batch.count() + batch.dropped();
      return post_([done] {
        done(make_error(
            Code::kResourceExhausted,
            "more task events wait to be written than the setting task_events_queue_bytes allows"));
      });
    }
    first = pending_.empty();
    pending_bytes_ += bytes;
    pending_.push_back({std::move(batch), std::move(source), std::move(done)});
  }
  if (first) disk_.post([this] { drain(); });
}

void SqliteHistory::drain() {
  std::vector<Appended> work;
  {
    MutexLock lock(mutex_);
    work.swap(pending_);
    pending_bytes_ = 0;
    dropped_ += std::exchange(overflow_, 0);
  }
  Work left(work);
  while (!left.empty()) {
    size_t count = 0;
    for (int64_t bytes = 0;
         count < left.size() &&
         (count == 0 || bytes + bytes_of(left[count].batch) <= kTransactionBytes);
         ++count)
      bytes += bytes_of(left[count].batch);
    Work together = left.first(count);
    left = left.subspan(count);
    if (Status done = write_or_make_room(together); done) {
      in_trouble_ = false;
    } else {
      give_up(together, done.error());
    }
  }
  // A history below min_bytes_ erases nothing, so it needs no reserve.
  if (kept_bytes_ > min_bytes_ && !in_trouble_ && !disk_full_) reserve_.take();
  if (work.empty()) return;
  // Shared because std::function copies.
  auto told = std::make_shared<std::vector<Appended>>(std::move(work));
  post_([told] {
    for (const Appended& one : *told)
      one.done(one.written ? Result<Outcome>(one.outcome) : Result<Outcome>(one.written.error()));
  });
}

Status SqliteHistory::write_or_make_room(Work work) {
  int64_t bytes = 0;
  for (const auto& one : work) bytes += bytes_of(one.batch);
  if (disk_full_) {
    reserve_.take();
    disk_full_ = !reserve_.taken();
  }
  if (!disk_full_) {
    Status done = write(work);
    if (done || done.error().code != Code::kOutOfDisk) return done;
    // Moving the log into the file may free enough space.
    if (db_->checkpoint()) done = write(work);
    if (done || kept_bytes_ - min_bytes_ < bytes) return done;
    disk_full_ = true;
    disk_full_error_ = done;
    RT_WARN("the oldest task events make room for new ones: {}", done.error().message);
    reserve_.release();
    (void)!db_->checkpoint();
  }
  return write_in_place(work, bytes);
}

// If a transaction put more pages into the log than the file has free pages, the log could not be
// moved into the file, and nothing more could be written.
Status SqliteHistory::write_in_place(Work work, int64_t bytes) {
  RT_ASSIGN(int64_t free, db_->free_bytes());
  if (free < bytes + bytes / 8 + kPagesBytes && !make_room(bytes)) return disk_full_error_;
  RT_TRY(write(work));
  (void)!db_->checkpoint();
  return {};
}

void SqliteHistory::give_up(Work work, const Error& why) {
  for (auto& one : work) {
    dropped_ += one.batch.count() + one.batch.dropped();
    one.written = why;
  }
  if (!std::exchange(in_trouble_, true)) RT_WARN("task events are being dropped: {}", why.message);
}

Status SqliteHistory::write(Work work) {
  const int64_t kept_before = kept_bytes_, dropped_before = dropped_;
  Numbers numbers;
  if (Status done = commit(work, &numbers); !done)
    return roll_back(done, kept_before, dropped_before);
  for (auto& [source, number] : numbers) numbers_[source] = number;
  return {};
}

Status SqliteHistory::roll_back(Status failed, int64_t kept_bytes, int64_t dropped) {
  if (!sqlite3_get_autocommit(db_->handle())) (void)!db_->exec("ROLLBACK");
  kept_bytes_ = kept_bytes;
  dropped_ = dropped;
  return failed;
}

bool SqliteHistory::make_room(int64_t bytes) {
  const int64_t kept_before = kept_bytes_, dropped_before = dropped_;
  if (kept_bytes_ - min_bytes_ < bytes) return false;
  auto erase = [&]() -> Status {
    RT_TRY(db_->exec("BEGIN IMMEDIATE"));
    RT_TRY(trim(std::max(min_bytes_, kept_bytes_ - std::max(2 * bytes, kRoomBytes))));
    RT_TRY(save_dropped());
    return db_->exec("COMMIT");
  };
  if (Status erased = erase(); !erased) {
    (void)!roll_back(erased, kept_before, dropped_before);
    return false;
  }
  dropped_on_disk_ = dropped_;
  (void)!db_->checkpoint();
  return true;
}

Status SqliteHistory::insert(const proto::TaskEventBatch& batch) {
  int64_t bytes = bytes_of(batch);
  dropped_ += std::max<int64_t>(0, batch.dropped());
  // The batch only reported dropped events.
  if (batch.count() == 0) return {};
  statements_.insert.bind(1, std::string_view(batch.job_id()));
  statements_.insert.bind(2, batch.min_time_us());
  statements_.insert.bind(3, batch.max_time_us());
  statements_.insert.bind(4, batch.count());
  statements_.insert.bind(5, bytes);
  statements_.insert.bind(6, std::string_view(batch.packed()));
  RT_TRY(statements_.insert.run());
  kept_bytes_ += bytes;
  if (batch.digest().empty()) return {};
  statements_.insert_digest.bind(1, std::string_view(batch.digest()));
  return statements_.insert_digest.run();
}

Status SqliteHistory::commit(Work work, Numbers* numbers) {
  RT_TRY(db_->exec("BEGIN IMMEDIATE"));
  for (auto& [batch, source, ignored, outcome, written] : work) {
    if (!source.empty()) {
      auto known = numbers_.find(source);
      int64_t& last =
          numbers->try_emplace(source, known == numbers_.end() ? 0 : known->second).first->second;
      if (batch.row() <= last) {
        outcome = Outcome::kDuplicate;
        continue;
      }
      last = batch.row();
    }
    RT_TRY(insert(batch));
  }
  RT_TRY(trim(max_bytes_));
  RT_TRY(save_numbers(*numbers));
  RT_TRY(save_dropped());
  RT_TRY(db_->exec("COMMIT"));
  dropped_on_disk_ = dropped_;
  return {};
}

Status SqliteHistory::save_dropped() {
  if (dropped_ == dropped_on_disk_) return {};
  RT_ASSIGN(auto totals, SqliteStatement::prepare(*db_, "UPDATE totals SET dropped = ?1"));
  totals.bind(1, dropped_);
  return totals.run();
}

Status SqliteHistory::save_numbers(const Numbers& numbers) {
  for (const auto& [source, number] : numbers) {
    statements_.save_number.bind(1, std::string_view(source));
    statements_.save_number.bind(2, number);
    RT_TRY(statements_.save_number.run());
  }
  return {};
}

Status SqliteHistory::trim(int64_t to_bytes) {
  if (kept_bytes_ <= to_bytes) return {};
  RT_ASSIGN(auto oldest,
            SqliteStatement::prepare(*db_, "SELECT row, bytes, count FROM batches ORDER BY row"));
  int64_t last = -1;
  while (kept_bytes_ > to_bytes) {
    RT_ASSIGN(bool row, oldest.step());
    if (!row) break;
    last = oldest.integer(0);
    kept_bytes_ -= oldest.integer(1);
    dropped_ += oldest.integer(2);
  }
  oldest.reset();
  RT_ASSIGN(auto remove, SqliteStatement::prepare(*db_, "DELETE FROM batches WHERE row <= ?1"));
  remove.bind(1, last);
  RT_TRY(remove.run());
  RT_ASSIGN(auto remove_digests,
            SqliteStatement::prepare(*db_, "DELETE FROM digests WHERE row <= ?1"));
  remove_digests.bind(1, last);
  return remove_digests.run();
}

void SqliteHistory::probe(std::function<void(Status)> done) {
  disk_.post([this, done = std::move(done)] {
    if (disk_full_) reserve_.take();
    Status written = disk_full_ && !reserve_.taken() ? disk_full_error_ : db_->write_mark();
    post_([done, written] { done(written); });
  });
}

void SqliteHistory::query(const proto::GetTaskEventsRequest& request,
                          std::function<void(Result<proto::GetTaskEventsReply>)> done) {
  disk_.post([this, request, done = std::move(done)] {
    // Writes what was appended before this query; its own drain may be queued behind.
    drain();
    auto reply = std::make_shared<Result<proto::GetTaskEventsReply>>(read(request));
    post_([done, reply] { done(std::move(*reply)); });
  });
}

namespace {

constexpr char kColumns[] = "SELECT batches.row, job, min_us, max_us, count, digest, ";

// Selects only the digest of batches that have one, and the packed events of the others.
std::string selection(const proto::GetTaskEventsRequest& request) {
  std::string sql = kColumns;
  sql += request.digests_only() ? "CASE WHEN digest IS NULL THEN packed END" : "packed";
  sql += " FROM batches LEFT JOIN digests ON digests.row = batches.row WHERE ";
  if (request.rows_size() > 0) return sql + "batches.row = ?1";
  return sql + (request.job_id().empty() ? "batches.row > ?1 ORDER BY batches.row"
                                         : "batches.row > ?1 AND job = ?2 ORDER BY batches.row");
}

// Adds the statement's row to the reply. If there is no room, sets `more` and returns false.
bool add_batch(const SqliteStatement& row, int64_t limit, int64_t* bytes,
               proto::GetTaskEventsReply* reply) {
  proto::TaskEventBatch batch;
  batch.set_digest(row.blob(5));
  batch.set_packed(row.blob(6));
  *bytes += bytes_of(batch);
  // The reply has at least one batch, however large, so that the caller makes progress.
  if (*bytes > limit && reply->batches_size() > 0) {
    reply->set_more(true);
    return false;
  }
  batch.set_row(row.integer(0));
  batch.set_job_id(row.blob(1));
  batch.set_min_time_us(row.integer(2));
  batch.set_max_time_us(row.integer(3));
  batch.set_count(row.integer(4));
  reply->set_next_row(batch.row());
  *reply->add_batches() = std::move(batch);
  return true;
}

}  // namespace

Result<proto::GetTaskEventsReply> SqliteHistory::read(const proto::GetTaskEventsRequest& request) {
  const int64_t limit =
      request.max_bytes() > 0 ? std::min(request.max_bytes(), kMaxReplyBytes) : kDefaultReplyBytes;
  RT_ASSIGN(auto rows, SqliteStatement::prepare(*db_, selection(request).c_str()));
  proto::GetTaskEventsReply reply;
  reply.set_next_row(request.after_row());
  reply.set_dropped(dropped_);
  int64_t bytes = 0;
  if (request.rows_size() > 0) {
    for (int64_t wanted : request.rows()) {
      rows.reset();
      rows.bind(1, wanted);
      RT_ASSIGN(bool found, rows.step());
      if (found && !add_batch(rows, limit, &bytes, &reply)) break;
    }
    return reply;
  }
  rows.bind(1, request.after_row());
  if (!request.job_id().empty()) rows.bind(2, std::string_view(request.job_id()));
  for (;;) {
    RT_ASSIGN(bool row, rows.step());
    if (!row || !add_batch(rows, limit, &bytes, &reply)) return reply;
  }
}

}  // namespace rt::head
