#include "daemons/head/storage/sqlite_history.h"

#include <algorithm>
#include <future>

#include "common/base/log.h"

namespace rt::head {
namespace {

constexpr char kSchema[] =
    "CREATE TABLE batches(row INTEGER PRIMARY KEY AUTOINCREMENT, job BLOB NOT NULL, min_us INTEGER NOT NULL, max_us INTEGER NOT NULL,"
    " count INTEGER NOT NULL, bytes INTEGER NOT NULL, packed BLOB NOT NULL);"
    "CREATE INDEX batches_of_job ON batches(job, row);"
    "CREATE TABLE totals(dropped INTEGER NOT NULL);"
    "INSERT INTO totals VALUES (0)";

// What a row costs beyond its packed events, so that many small batches are bounded, too.
constexpr int64_t kRowBytes = 100;
constexpr int64_t kDefaultReplyBytes = 16 << 20, kMaxReplyBytes = 64 << 20;

}  // namespace

Result<std::unique_ptr<SqliteHistory>> SqliteHistory::open(const std::string& path, const Settings& settings, DiskThread& disk, PostTask post) {
  RT_ASSIGN(auto db, SqliteDb::open({path, "the task history", false, kSchema}));
  RT_ASSIGN(auto insert, SqliteStatement::prepare(*db, "INSERT INTO batches(job, min_us, max_us, count, bytes, packed) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
  std::unique_ptr<SqliteHistory> history(new SqliteHistory(std::move(db), std::move(insert), settings, disk, std::move(post)));
  RT_TRY(history->load_totals());
  return history;
}

SqliteHistory::~SqliteHistory() {
  std::promise<void> drained;
  disk_.post([&drained] { drained.set_value(); });
  drained.get_future().wait();
}

Status SqliteHistory::load_totals() {
  RT_ASSIGN(auto sum, SqliteStatement::prepare(*db_, "SELECT COALESCE(SUM(bytes), 0) FROM batches"));
  RT_TRY(sum.step());
  kept_bytes_ = sum.integer(0);
  RT_ASSIGN(auto dropped, SqliteStatement::prepare(*db_, "SELECT COALESCE(SUM(dropped), 0) FROM totals"));
  RT_TRY(dropped.step());
  dropped_ = dropped.integer(0);
  return {};
}

void SqliteHistory::append(proto::TaskEventBatch batch) {
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    int64_t bytes = static_cast<int64_t>(batch.packed().size()) + kRowBytes;
    if (pending_bytes_ + bytes > queue_bytes_) {
      overflow_ += batch.count() + batch.dropped();
      return;
    }
    first = pending_.empty();
    pending_bytes_ += bytes;
    pending_.push_back(std::move(batch));
  }
  if (first) disk_.post([this] { drain(); });
}

void SqliteHistory::drain() {
  std::vector<proto::TaskEventBatch> work;
  {
    std::lock_guard lock(mutex_);
    work.swap(pending_);
    pending_bytes_ = 0;
    dropped_ += std::exchange(overflow_, 0);
  }
  int64_t kept_before = kept_bytes_, dropped_before = dropped_;
  Status done = write(work);
  if (done) {
    in_trouble_ = false;
    return;
  }
  if (!sqlite3_get_autocommit(db_->handle())) (void)!db_->exec("ROLLBACK");
  kept_bytes_ = kept_before;
  dropped_ = dropped_before;
  for (const auto& batch : work) dropped_ += batch.count() + batch.dropped();
  if (!std::exchange(in_trouble_, true)) RT_WARN("task events are being dropped: {}", done.error().message);
}

Status SqliteHistory::write(const std::vector<proto::TaskEventBatch>& batches) {
  RT_TRY(db_->exec("BEGIN IMMEDIATE"));
  for (const auto& batch : batches) {
    int64_t bytes = static_cast<int64_t>(batch.packed().size()) + kRowBytes;
    dropped_ += std::max<int64_t>(0, batch.dropped());
    insert_.bind(1, std::string_view(batch.job_id()));
    insert_.bind(2, batch.min_time_us());
    insert_.bind(3, batch.max_time_us());
    insert_.bind(4, batch.count());
    insert_.bind(5, bytes);
    insert_.bind(6, std::string_view(batch.packed()));
    RT_TRY(insert_.run());
    kept_bytes_ += bytes;
  }
  RT_TRY(trim());
  RT_ASSIGN(auto totals, SqliteStatement::prepare(*db_, "UPDATE totals SET dropped = ?1"));
  totals.bind(1, dropped_);
  RT_TRY(totals.run());
  return db_->exec("COMMIT");
}

Status SqliteHistory::trim() {
  if (kept_bytes_ <= max_bytes_) return {};
  RT_ASSIGN(auto oldest, SqliteStatement::prepare(*db_, "SELECT row, bytes, count FROM batches ORDER BY row"));
  int64_t last = -1;
  while (kept_bytes_ > max_bytes_) {
    RT_ASSIGN(bool row, oldest.step());
    if (!row) break;
    last = oldest.integer(0);
    kept_bytes_ -= oldest.integer(1);
    dropped_ += oldest.integer(2);
  }
  oldest.reset();
  RT_ASSIGN(auto remove, SqliteStatement::prepare(*db_, "DELETE FROM batches WHERE row <= ?1"));
  remove.bind(1, last);
  return remove.run();
}

void SqliteHistory::query(const proto::GetTaskEventsRequest& request, std::function<void(Result<proto::GetTaskEventsReply>)> done) {
  disk_.post([this, request, done = std::move(done)] {
    drain();   // what was appended before this question, whose own drain may come later
    auto reply = std::make_shared<Result<proto::GetTaskEventsReply>>(read(request));
    post_([done, reply] { done(std::move(*reply)); });
  });
}

Result<proto::GetTaskEventsReply> SqliteHistory::read(const proto::GetTaskEventsRequest& request) {
  int64_t limit = request.max_bytes() > 0 ? std::min(request.max_bytes(), kMaxReplyBytes) : kDefaultReplyBytes;
  bool one_job = !request.job_id().empty();
  RT_ASSIGN(auto rows, SqliteStatement::prepare(*db_, one_job ? "SELECT row, job, min_us, max_us, count, bytes, packed FROM batches WHERE row > ?1 AND job = ?2 ORDER BY row"
                                                              : "SELECT row, job, min_us, max_us, count, bytes, packed FROM batches WHERE row > ?1 ORDER BY row"));
  rows.bind(1, request.after_row());
  if (one_job) rows.bind(2, std::string_view(request.job_id()));
  proto::GetTaskEventsReply reply;
  reply.set_next_row(request.after_row());
  reply.set_dropped(dropped_);
  int64_t bytes = 0;
  for (;;) {
    RT_ASSIGN(bool row, rows.step());
    if (!row) return reply;
    bytes += rows.integer(5);
    // At least one, however large: the caller must get on.
    if (bytes > limit && reply.batches_size() > 0) {
      reply.set_more(true);
      return reply;
    }
    proto::TaskEventBatch* batch = reply.add_batches();
    batch->set_job_id(rows.blob(1));
    batch->set_min_time_us(rows.integer(2));
    batch->set_max_time_us(rows.integer(3));
    batch->set_count(rows.integer(4));
    batch->set_packed(rows.blob(6));
    reply.set_next_row(rows.integer(0));
  }
}

}  // namespace rt::head
