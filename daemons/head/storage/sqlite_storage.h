// The head's durable state in one SQLite file. All batches that wait when the disk thread is free
// share one commit and its fsync.
#pragma once

#include <vector>

#include "common/base/mutex.h"
#include "daemons/head/storage/disk_thread.h"
#include "daemons/head/storage/sqlite_db.h"
#include "daemons/head/storage/storage.h"

namespace rt::head {

class SqliteStorage final : public Storage {
 public:
  // `disk` and what `post` posts to must outlive the storage. Errors name file, cause and remedy.
  static Result<std::unique_ptr<SqliteStorage>> open(const std::string& path, DiskThread& disk,
                                                     PostTask post);
  ~SqliteStorage() override;

  Result<Tables> load() override;
  void apply(Batch batch, Done done) override;

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
  // The next three run in the disk thread only.
  void drain();
  Status commit(const std::vector<const Batch*>& batches);
  Status write(const Batch& batch);

  // Once load() has returned, only the disk thread uses the next three.
  std::unique_ptr<SqliteDb> db_;
  SqliteStatement put_, erase_;
  bool in_trouble_ = false;  // Whether the last commit failed.

  DiskThread& disk_;
  const PostTask post_;
  Mutex mutex_;
  std::vector<Pending> pending_ GUARDED_BY(mutex_);
};

}  // namespace rt::head
