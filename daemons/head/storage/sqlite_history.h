// Task event batches in a SQLite file of their own, one row each.
//
// Never stops the head: what cannot be queued or written is dropped and counted, with one log line per trouble.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/config/settings.h"
#include "daemons/head/storage/disk_thread.h"
#include "daemons/head/storage/sqlite_db.h"
#include "daemons/head/storage/storage.h"

namespace rt::head {

class SqliteHistory final : public History {
 public:
  static Result<std::unique_ptr<SqliteHistory>> open(const std::string& path, const Settings& settings, DiskThread& disk, PostTask post);
  ~SqliteHistory() override;

  void append(proto::TaskEventBatch batch, std::string source, std::function<void(Result<Taken>)> done) override;
  void query(const proto::GetTaskEventsRequest& request, std::function<void(Result<proto::GetTaskEventsReply>)> done) override;

 private:
  SqliteHistory(std::unique_ptr<SqliteDb> db, SqliteStatement insert, SqliteStatement insert_digest, SqliteStatement save_number, const Settings& settings, DiskThread& disk, PostTask post)
      : db_(std::move(db)), insert_(std::move(insert)), insert_digest_(std::move(insert_digest)), save_number_(std::move(save_number)), max_bytes_(settings.task_events_max_bytes), queue_bytes_(settings.task_events_queue_bytes), disk_(disk), post_(std::move(post)) {}
  Status load_totals();
  // Disk thread only, as all below.
  void drain();
  struct Appended {
    proto::TaskEventBatch batch;
    std::string source;
    std::function<void(Result<Taken>)> done;
    Taken taken = Taken::kNow;
  };
  using Numbers = std::unordered_map<std::string, int64_t>;      // the last of each source
  Status write(std::vector<Appended>& work, Numbers* numbers);        // says of each whether it was there
  Status insert(const proto::TaskEventBatch& batch);
  Status save_numbers(const Numbers& numbers);
  Status trim();
  Result<proto::GetTaskEventsReply> read(const proto::GetTaskEventsRequest& request);

  std::unique_ptr<SqliteDb> db_;
  SqliteStatement insert_, insert_digest_, save_number_;
  const int64_t max_bytes_, queue_bytes_;
  int64_t kept_bytes_ = 0;
  int64_t dropped_ = 0;          // events, for good: trimmed, lost on the way, or dropped by the processes themselves
  int64_t dropped_on_disk_ = 0;
  bool in_trouble_ = false;
  Numbers numbers_;

  DiskThread& disk_;
  const PostTask post_;
  std::mutex mutex_;
  std::vector<Appended> pending_;                // guarded
  int64_t pending_bytes_ = 0;                    // guarded
  int64_t overflow_ = 0;                         // guarded: events dropped because the queue was full
};

}  // namespace rt::head
