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
constexpr char kSources[] = "CREATE TABLE IF NOT EXISTS sources(source BLOB PRIMARY KEY, number INTEGER NOT NULL)";
// Apart from the batches, so that reading all of them touches no page of those. Files of earlier releases have none.
constexpr char kDigests[] = "CREATE TABLE IF NOT EXISTS digests(row INTEGER PRIMARY KEY, digest BLOB NOT NULL)";

// What a row costs beyond its packed events, so that many small batches are bounded, too.
constexpr int64_t kRowBytes = 100;
constexpr int64_t kDefaultReplyBytes = 16 << 20, kMaxReplyBytes = 64 << 20;

int64_t bytes_of(const proto::TaskEventBatch& batch) { return static_cast<int64_t>(batch.packed().size() + batch.digest().size()) + kRowBytes; }

}  // namespace

Result<std::unique_ptr<SqliteHistory>> SqliteHistory::open(const std::string& path, const Settings& settings, DiskThread& disk, PostTask post) {
  RT_ASSIGN(auto db, SqliteDb::open({path, "the task history", false, kSchema}));
  RT_ASSIGN(auto insert, SqliteStatement::prepare(*db, "INSERT INTO batches(job, min_us, max_us, count, bytes, packed) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
  RT_TRY(db->exec(kDigests));
  RT_TRY(db->exec(kSources));
  RT_ASSIGN(auto save_number, SqliteStatement::prepare(*db, "INSERT OR REPLACE INTO sources(source, number) VALUES (?1, ?2)"));
  RT_ASSIGN(auto insert_digest, SqliteStatement::prepare(*db, "INSERT INTO digests(row, digest) VALUES (last_insert_rowid(), ?1)"));
  std::unique_ptr<SqliteHistory> history(new SqliteHistory(std::move(db), std::move(insert), std::move(insert_digest), std::move(save_number), settings, disk, std::move(post)));
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
  dropped_ = dropped_on_disk_ = dropped.integer(0);
  RT_ASSIGN(auto sources, SqliteStatement::prepare(*db_, "SELECT source, number FROM sources"));
  for (;;) {
    RT_ASSIGN(bool row, sources.step());
    if (!row) return {};
    numbers_[std::string(sources.blob(0))] = sources.integer(1);
  }
}

void SqliteHistory::append(proto::TaskEventBatch batch, std::string source, std::function<void(Result<Taken>)> done) {
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    int64_t bytes = bytes_of(batch);
    if (pending_bytes_ + bytes > queue_bytes_) {
      overflow_ += batch.count() + batch.dropped();
      return post_([done] { done(make_error(Code::kResourceExhausted, "more task events wait to be written than the setting task_events_queue_bytes allows")); });
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
    std::lock_guard lock(mutex_);
    work.swap(pending_);
    pending_bytes_ = 0;
    dropped_ += std::exchange(overflow_, 0);
  }
  if (work.empty()) return;
  int64_t kept_before = kept_bytes_, dropped_before = dropped_;
  Numbers numbers;
  Status done = write(work, &numbers);
  if (done) {
    in_trouble_ = false;
    for (auto& [source, number] : numbers) numbers_[source] = number;
  } else {
    if (!sqlite3_get_autocommit(db_->handle())) (void)!db_->exec("ROLLBACK");
    kept_bytes_ = kept_before;
    dropped_ = dropped_before;
    for (const auto& one : work) dropped_ += one.batch.count() + one.batch.dropped();
    if (!std::exchange(in_trouble_, true)) RT_WARN("task events are being dropped: {}", done.error().message);
  }
  auto told = std::make_shared<std::vector<Appended>>(std::move(work));     // std::function copies
  post_([told, done] {
    for (const Appended& one : *told) one.done(done ? Result<Taken>(one.taken) : Result<Taken>(done.error()));
  });
}

Status SqliteHistory::insert(const proto::TaskEventBatch& batch) {
  int64_t bytes = bytes_of(batch);
  dropped_ += std::max<int64_t>(0, batch.dropped());
  if (batch.count() == 0) return {};         // it only said so
  insert_.bind(1, std::string_view(batch.job_id()));
  insert_.bind(2, batch.min_time_us());
  insert_.bind(3, batch.max_time_us());
  insert_.bind(4, batch.count());
  insert_.bind(5, bytes);
  insert_.bind(6, std::string_view(batch.packed()));
  RT_TRY(insert_.run());
  kept_bytes_ += bytes;
  if (batch.digest().empty()) return {};
  insert_digest_.bind(1, std::string_view(batch.digest()));
  return insert_digest_.run();
}

Status SqliteHistory::write(std::vector<Appended>& work, Numbers* numbers) {
  RT_TRY(db_->exec("BEGIN IMMEDIATE"));
  for (auto& [batch, source, ignored, taken] : work) {
    if (!source.empty()) {
      auto known = numbers_.find(source);
      int64_t& last = numbers->try_emplace(source, known == numbers_.end() ? 0 : known->second).first->second;
      if (batch.row() <= last) {
        taken = Taken::kBefore;
        continue;
      }
      last = batch.row();
    }
    RT_TRY(insert(batch));
  }
  RT_TRY(trim());
  RT_TRY(save_numbers(*numbers));
  if (dropped_ != dropped_on_disk_) {
    RT_ASSIGN(auto totals, SqliteStatement::prepare(*db_, "UPDATE totals SET dropped = ?1"));
    totals.bind(1, dropped_);
    RT_TRY(totals.run());
  }
  RT_TRY(db_->exec("COMMIT"));
  dropped_on_disk_ = dropped_;
  return {};
}

Status SqliteHistory::save_numbers(const Numbers& numbers) {
  for (const auto& [source, number] : numbers) {
    save_number_.bind(1, std::string_view(source));
    save_number_.bind(2, number);
    RT_TRY(save_number_.run());
  }
  return {};
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
  RT_TRY(remove.run());
  RT_ASSIGN(auto remove_digests, SqliteStatement::prepare(*db_, "DELETE FROM digests WHERE row <= ?1"));
  remove_digests.bind(1, last);
  return remove_digests.run();
}

void SqliteHistory::query(const proto::GetTaskEventsRequest& request, std::function<void(Result<proto::GetTaskEventsReply>)> done) {
  disk_.post([this, request, done = std::move(done)] {
    drain();   // what was appended before this question, whose own drain may come later
    auto reply = std::make_shared<Result<proto::GetTaskEventsReply>>(read(request));
    post_([done, reply] { done(std::move(*reply)); });
  });
}

namespace {

constexpr char kColumns[] = "SELECT batches.row, job, min_us, max_us, count, digest, ";

// Of the batches with a digest only that; of the others all.
std::string selection(const proto::GetTaskEventsRequest& request) {
  std::string sql = kColumns;
  sql += request.digests_only() ? "CASE WHEN digest IS NULL THEN packed END" : "packed";
  sql += " FROM batches LEFT JOIN digests ON digests.row = batches.row WHERE ";
  if (request.rows_size() > 0) return sql + "batches.row = ?1";
  return sql + (request.job_id().empty() ? "batches.row > ?1 ORDER BY batches.row" : "batches.row > ?1 AND job = ?2 ORDER BY batches.row");
}

// Adds the statement's row. False, and `more` is set: there is no place for it.
bool add_batch(const SqliteStatement& row, int64_t limit, int64_t* bytes, proto::GetTaskEventsReply* reply) {
  proto::TaskEventBatch batch;
  batch.set_digest(row.blob(5));
  batch.set_packed(row.blob(6));
  *bytes += bytes_of(batch);
  // At least one, however large: the caller must get on.
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
  const int64_t limit = request.max_bytes() > 0 ? std::min(request.max_bytes(), kMaxReplyBytes) : kDefaultReplyBytes;
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
