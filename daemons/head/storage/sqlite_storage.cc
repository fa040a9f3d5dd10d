#include "daemons/head/storage/sqlite_storage.h"

#include <future>

namespace rt::head {
namespace {

constexpr char kStateSchema[] =
    "CREATE TABLE records(tab BLOB NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY "
    "KEY(tab, key))";

}  // namespace

Result<std::unique_ptr<SqliteStorage>> SqliteStorage::open(const std::string& path,
                                                           DiskThread& disk, PostTask post) {
  RT_ASSIGN(auto db, SqliteDb::open({path, "the head's state", true, kStateSchema}));
  RT_ASSIGN(auto put,
            SqliteStatement::prepare(*db, "INSERT OR REPLACE INTO records VALUES (?1, ?2, ?3)"));
  RT_ASSIGN(auto erase,
            SqliteStatement::prepare(*db, "DELETE FROM records WHERE tab = ?1 AND key = ?2"));
  return std::unique_ptr<SqliteStorage>(
      new SqliteStorage(std::move(db), std::move(put), std::move(erase), disk, std::move(post)));
}

SqliteStorage::~SqliteStorage() {
  std::promise<void> drained;
  disk_.post([&drained] { drained.set_value(); });
  drained.get_future().wait();
}

Result<Tables> SqliteStorage::load() {
  Tables tables;
  RT_ASSIGN(auto query, SqliteStatement::prepare(*db_, "SELECT tab, key, value FROM records"));
  for (;;) {
    RT_ASSIGN(bool row, query.step());
    if (!row) return tables;
    tables[query.blob(0)][query.blob(1)] = query.blob(2);
  }
}

void SqliteStorage::apply(Batch batch, Done done) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = pending_.empty();
    pending_.push_back({std::move(batch), std::move(done)});
  }
  if (first) disk_.post([this] { drain(); });
}

void SqliteStorage::drain() {
  std::vector<Pending> work;
  {
    MutexLock lock(mutex_);
    work.swap(pending_);
  }
  std::vector<const Batch*> all;
  for (const Pending& pending : work) all.push_back(&pending.batch);
  std::vector<Status> results(work.size(), commit(all));
  if (!results[0] && work.size() > 1) {
    for (size_t i = 0; i < work.size(); ++i) results[i] = commit({all[i]});
  }
  post_([work = std::make_shared<std::vector<Pending>>(std::move(work)),
         results = std::move(results)] {
    for (size_t i = 0; i < work->size(); ++i) (*work)[i].done(results[i]);
  });
}

Status SqliteStorage::commit(const std::vector<const Batch*>& batches) {
  auto attempt = [&]() -> Status {
    RT_TRY(db_->exec("BEGIN IMMEDIATE"));
    for (const Batch* batch : batches) RT_TRY(write(*batch));
    // Erasing a record that never reached the disk writes nothing, and its success would be taken
    // for the end of the trouble.
    if (in_trouble_) RT_TRY(db_->write_mark());
    return db_->exec("COMMIT");
  };
  Status done = attempt();
  // SQLite rolls the transaction back by itself after some failures.
  if (!done && !sqlite3_get_autocommit(db_->handle())) (void)!db_->exec("ROLLBACK");
  in_trouble_ = !done;
  return done;
}

Status SqliteStorage::write(const Batch& batch) {
  for (const Write& record : batch) {
    SqliteStatement& statement = record.value ? put_ : erase_;
    statement.bind(1, record.table);
    statement.bind(2, record.key);
    if (record.value) statement.bind(3, *record.value);
    RT_TRY(statement.run());
  }
  return {};
}

}  // namespace rt::head
