// Task event batches in a SQLite file of their own, one row each.
//
// Never stops the head: what cannot be queued or written is dropped and counted, with one log line
// per trouble. On a full disk the oldest rows are erased for the new ones, whose pages they leave;
// since to erase is to write, too, a reserve on the disk is given up for that (disk_reserve.h).
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/config/settings.h"
#include "daemons/head/storage/disk_reserve.h"
#include "daemons/head/storage/disk_thread.h"
#include "daemons/head/storage/sqlite_db.h"
#include "daemons/head/storage/storage.h"

namespace rt::head {

class SqliteHistory final : public History {
 public:
  static Result<std::unique_ptr<SqliteHistory>> open(const std::string& path,
                                                     const Settings& settings, DiskThread& disk,
                                                     PostTask post);
  ~SqliteHistory() override;

  void append(proto::TaskEventBatch batch, std::string source,
              std::function<void(Result<Taken>)> done) override;
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
  // Disk thread only, as all below.
  void drain();
  struct Appended {
    proto::TaskEventBatch batch;
    std::string source;
    std::function<void(Result<Taken>)> done;
    Taken taken = Taken::kNow;
    Status written = {};
  };
  using Work = std::span<Appended>;
  using Numbers = std::unordered_map<std::string, int64_t>;  // the last of each source
  // One transaction; of each it is said whether it was there. What fails leaves nothing.
  Status write(Work work);
  Status commit(Work work, Numbers* numbers);
  // write(), and what helps when the disk is full.
  Status write_somehow(Work work);
  Status write_in_place(Work work, int64_t bytes);
  // Erases the oldest rows, so that `bytes` find place in their pages. False: there are not that
  // many beyond the floor, or even that cannot be written.
  bool make_room(int64_t bytes);
  Status undone(Status failed, int64_t kept_bytes, int64_t dropped);
  void give_up(Work work, const Error& why);
  Status insert(const proto::TaskEventBatch& batch);
  Status save_numbers(const Numbers& numbers);
  Status save_dropped();
  Status trim(int64_t to_bytes);
  Result<proto::GetTaskEventsReply> read(const proto::GetTaskEventsRequest& request);

  std::unique_ptr<SqliteDb> db_;
  Statements statements_;
  const int64_t max_bytes_, min_bytes_, queue_bytes_;
  DiskReserve reserve_;
  int64_t kept_bytes_ = 0;
  int64_t dropped_ = 0;  // events, for good: trimmed, erased for new ones, lost on the way, or
                         // dropped by the processes themselves
  int64_t dropped_on_disk_ = 0;
  bool in_trouble_ = false;  // the last write failed, whatever was tried
  bool tight_ = false;  // the disk is full: what is written takes the place of the oldest, until
                        // the reserve can be taken again
  Status full_;         // what said so
  Numbers numbers_;

  DiskThread& disk_;
  const PostTask post_;
  std::mutex mutex_;
  std::vector<Appended> pending_;  // guarded
  int64_t pending_bytes_ = 0;      // guarded
  int64_t overflow_ = 0;           // guarded: events dropped because the queue was full
};

}  // namespace rt::head
