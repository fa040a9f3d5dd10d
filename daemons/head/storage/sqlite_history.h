// Task event batches in a SQLite file of their own, one row each.
//
// The history never stops the head: it drops and counts what it cannot queue or write, with one
// log line per period of trouble. On a full disk it erases the oldest rows and writes new ones
// into their pages. Since erasing writes, too, it gives up a reserve on the disk for that
// (disk_reserve.h).
//
// Threads: public methods run in the head's thread, the rest in the disk thread.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/mutex.h"
#include "common/config/settings.h"
#include "daemons/head/storage/disk_reserve.h"
#include "daemons/head/storage/disk_thread.h"
#include "daemons/head/storage/sqlite_db.h"
#include "daemons/head/storage/storage.h"

namespace rt::head {

class SqliteHistory final : public History {
 public:
  // `disk` and what `post` posts to must outlive the history. Errors name file, cause and remedy.
  static Result<std::unique_ptr<SqliteHistory>> open(const std::string& path,
                                                     const Settings& settings, DiskThread& disk,
                                                     PostTask post);
  ~SqliteHistory() override;

  void append(proto::TaskEventBatch batch, std::string source,
              std::function<void(Result<Outcome>)> done) override;
  void probe(std::function<void(Status)> done) override;
  void query(const proto::GetTaskEventsRequest& request,
             std::function<void(Result<proto::GetTaskEventsReply>)> done) override;

 private:
  struct Statements {
    SqliteStatement insert, insert_digest, save_number;
  };
  SqliteHistory(std::unique_ptr<SqliteDb> db, Statements statements, const std::string& path,
                const Settings& settings, DiskThread& disk, PostTask post);
  Status load_totals();
  // Everything from here to the members runs in the disk thread only.
  void drain();
  struct Appended {
    proto::TaskEventBatch batch;
    std::string source;
    std::function<void(Result<Outcome>)> done;
    Outcome outcome = Outcome::kWritten;
    Status written = {};
  };
  using Work = std::span<Appended>;
  // The last number of each source.
  using Numbers = std::unordered_map<std::string, int64_t>;
  // Writes `work` in one transaction and sets `outcome` of each entry. A failure leaves no trace.
  Status write(Work work);
  Status commit(Work work, Numbers* numbers);
  // Calls write() and, on a full disk, whatever else can make it succeed.
  Status write_or_make_room(Work work);
  Status write_in_place(Work work, int64_t bytes);
  // Erases the oldest rows, so that `bytes` fit into their pages. Returns false when not so many
  // rows exist beyond min_bytes_, or when not even the erasing can be written.
  bool make_room(int64_t bytes);
  // Rolls the transaction back, restores the counters and returns `failed`.
  Status roll_back(Status failed, int64_t kept_bytes, int64_t dropped);
  // Counts the events of `work` as dropped and fails its entries with `why`.
  void give_up(Work work, const Error& why);
  Status insert(const proto::TaskEventBatch& batch);
  Status save_numbers(const Numbers& numbers);
  Status save_dropped();
  // Erases the oldest rows until at most `to_bytes` are kept.
  Status trim(int64_t to_bytes);
  Result<proto::GetTaskEventsReply> read(const proto::GetTaskEventsRequest& request);

  std::unique_ptr<SqliteDb> db_;
  Statements statements_;
  const int64_t max_bytes_, min_bytes_, queue_bytes_;
  DiskReserve reserve_;
  int64_t kept_bytes_ = 0;
  // Counts events that are lost for good: trimmed, erased for new ones, lost on the way here, or
  // dropped by the processes that reported them.
  int64_t dropped_ = 0;
  int64_t dropped_on_disk_ = 0;
  bool in_trouble_ = false;  // The last write failed despite all attempts.
  // The disk is full: new rows replace the oldest until the reserve can be taken again.
  bool disk_full_ = false;
  Status disk_full_error_;  // the error that set disk_full_
  Numbers numbers_;

  DiskThread& disk_;
  const PostTask post_;
  Mutex mutex_;
  std::vector<Appended> pending_ GUARDED_BY(mutex_);
  int64_t pending_bytes_ GUARDED_BY(mutex_) = 0;
  // Events dropped because the queue was full.
  int64_t overflow_ GUARDED_BY(mutex_) = 0;
};

}  // namespace rt::head
