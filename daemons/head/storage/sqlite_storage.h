// The durable state in one SQLite file: every batch that waits when the writer is free shares one
// commit and its fsync.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "daemons/head/storage/disk_thread.h"
#include "daemons/head/storage/sqlite_db.h"
#include "daemons/head/storage/storage.h"

namespace rt::head {

class SqliteStorage final : public Storage {
 public:
  // `disk` and what `post` posts to outlive the storage. Errors name file, cause and remedy.
  static Result<std::unique_ptr<SqliteStorage>> open(const std::string& path, DiskThread& disk,
                                                     PostTask post);
  ~SqliteStorage() override;

  Result<Tables> load() override;
  void apply(Batch batch, Done done) override;
  // Commits so far: fewer than batches when they came faster than the disk.
  int64_t commits() const { return commits_; }

 private:
  struct Pending {
    Batch batch;
    Done done;
  };
  SqliteStorage(std::unique_ptr<SqliteDb> db, SqliteStatement put, SqliteStatement erase,
                DiskThread& disk, PostTask post)
      : db_(std::move(db)),
        put_(std::move(put)),
        erase_(std::move(erase)),
        disk_(disk),
        post_(std::move(post)) {}
  void drain();                                             // disk thread
  Status commit(const std::vector<const Batch*>& batches);  // disk thread
  Status write(const Batch& batch);                         // disk thread

  // Disk thread only, once load() has returned.
  std::unique_ptr<SqliteDb> db_;
  SqliteStatement put_, erase_;
  bool in_trouble_ = false;  // the last commit failed
  std::atomic<int64_t> commits_ = 0;

  DiskThread& disk_;
  const PostTask post_;
  std::mutex mutex_;
  std::vector<Pending> pending_;  // guarded
};

}  // namespace rt::head
