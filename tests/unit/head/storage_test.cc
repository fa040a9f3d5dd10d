// SQLite storage of the head's tables and of the history of task events: durability, full disks,
// damaged files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <optional>

#include "common/base/ids.h"
#include "daemons/head/storage/sqlite_history.h"
#include "daemons/head/storage/sqlite_storage.h"

namespace rt::head {
namespace {

// Stands in for the head's loop: tasks are posted from any thread and run in the test's thread.
class Mailbox {
 public:
  PostTask post() {
    return [this](std::function<void()> task) {
      std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      wake_.notify_one();
    };
  }
  bool run_until(const std::function<bool()>& done) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      std::unique_lock lock(mutex_);
      if (!wake_.wait_until(lock, deadline, [this] { return !tasks_.empty(); })) return false;
      auto task = std::move(tasks_.front());
      tasks_.erase(tasks_.begin());
      lock.unlock();
      task();
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::function<void()>> tasks_;
};

class StorageTest : public ::testing::Test {
 protected:
  StorageTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "head_storage_XXXXXX").string();
    dir = ::mkdtemp(pattern.data());
  }
  ~StorageTest() override { std::filesystem::remove_all(dir); }

  std::string file() const { return dir + "/head.sqlite"; }
  Status apply(Storage& storage, Batch batch) {
    std::optional<Status> result;
    storage.apply(std::move(batch), [&](Status status) { result = status; });
    EXPECT_TRUE(mailbox.run_until([&] { return result.has_value(); }));
    return result.value_or(Status());
  }
  Tables reload() {
    DiskThread disk;
    auto storage = SqliteStorage::open(file(), disk, mailbox.post());
    EXPECT_TRUE(storage) << storage.error().message;
    return storage ? *(*storage)->load() : Tables();
  }

  std::string dir;
  Mailbox mailbox;
};

TEST_F(StorageTest, RecordsSurvive) {
  {
    DiskThread disk;
    auto storage = SqliteStorage::open(file(), disk, mailbox.post());
    ASSERT_TRUE(storage) << storage.error().message;
    EXPECT_TRUE((*storage)->load()->empty());
    std::string binary("k\0\xff", 3);
    EXPECT_TRUE(apply(**storage, {{"kv", binary, "v1"},
                                  {"kv", "gone", "x"},
                                  {"jobs", "j", std::string(1 << 20, 'z')},
                                  {"kv", "empty", ""}}));
    EXPECT_TRUE(
        apply(**storage,
              {{"kv", binary, "v2"}, {"kv", "gone", std::nullopt}, {"kv", "never", std::nullopt}}));
  }
  Tables tables = reload();
  EXPECT_EQ(tables["kv"].size(), 2u);
  EXPECT_EQ(tables["kv"][std::string("k\0\xff", 3)], "v2");
  EXPECT_EQ(tables["kv"]["empty"], "");
  EXPECT_EQ(tables["jobs"]["j"].size(), 1u << 20);
}

TEST_F(StorageTest, WaitingBatchesShareACommit) {
  DiskThread disk;
  auto opened = SqliteStorage::open(file(), disk, mailbox.post());
  ASSERT_TRUE(opened);
  SqliteStorage& storage = **opened;
  std::promise<void> gate;
  disk.post([&] { gate.get_future().wait(); });  // Keeps the disk thread busy.
  int done = 0;
  std::vector<int> order;
  for (int i = 0; i < 200; ++i) {
    storage.apply({{"kv", std::to_string(i), "v"}}, [&, i](Status status) {
      EXPECT_TRUE(status);
      order.push_back(i);
      ++done;
    });
  }
  gate.set_value();
  ASSERT_TRUE(mailbox.run_until([&] { return done == 200; }));
  // A commit appends at least one page to the log.
  constexpr size_t kPage = 4096, kFew = 50;
  EXPECT_LT(std::filesystem::file_size(file() + "-wal"), kFew * kPage);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(StorageTest, WhatWasAcknowledgedSurvivesSigkill) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  pid_t child = ::fork();
  if (child == 0) {
    DiskThread disk;
    auto storage = SqliteStorage::open(file(), disk, mailbox.post());
    if (!storage) ::_exit(1);
    for (int i = 0; i < 1000; ++i) {
      std::string key = std::to_string(i);
      // The two records of a batch are written together or not at all.
      if (!apply(**storage, {{"a", key, key}, {"b", key, key}})) ::_exit(1);
      if (::write(ends[1], &i, sizeof i) != sizeof i) ::_exit(1);
    }
    for (;;) ::pause();
  }
  ::close(ends[1]);
  int acknowledged = -1;
  while (acknowledged < 300)
    ASSERT_EQ(::read(ends[0], &acknowledged, sizeof acknowledged),
              static_cast<ssize_t>(sizeof acknowledged));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (int more; ::read(ends[0], &more, sizeof more) == sizeof more;) acknowledged = more;
  ::close(ends[0]);
  Tables tables = reload();
  for (int i = 0; i <= acknowledged; ++i)
    EXPECT_EQ(tables["a"][std::to_string(i)], std::to_string(i));
  EXPECT_EQ(tables["a"], tables["b"]);
}

// A limit of the file size stands in for a full disk, because making a full file system needs
// root.
TEST_F(StorageTest, AFullDiskFailsTheBatchAndNothingElse) {
  std::signal(SIGXFSZ, SIG_IGN);
  DiskThread disk;
  auto opened = SqliteStorage::open(file(), disk, mailbox.post());
  ASSERT_TRUE(opened);
  ASSERT_TRUE(apply(**opened, {{"kv", "before", "v"}}));
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit small{512 * 1024, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  Status big = apply(**opened, {{"kv", "half", "x"}, {"kv", "big", std::string(4 << 20, 'x')}});
  Status little = apply(**opened, {{"kv", "little", "v"}});
  // A batch that fits succeeds even if it shares a commit with one that does not.
  std::promise<void> gate;
  disk.post([&] { gate.get_future().wait(); });
  std::vector<Status> mixed;
  (*opened)->apply({{"kv", "big", std::string(4 << 20, 'x')}},
                   [&](Status s) { mixed.push_back(s); });
  (*opened)->apply({{"kv", "fits", "v"}}, [&](Status s) { mixed.push_back(s); });
  gate.set_value();
  bool answered = mailbox.run_until([&] { return mixed.size() == 2; });
  ::setrlimit(RLIMIT_FSIZE, &old);
  ASSERT_TRUE(answered);
  ASSERT_FALSE(big);
  EXPECT_EQ(big.error().code, Code::kOutOfDisk);
  EXPECT_NE(big.error().message.find(file()), std::string::npos) << big.error().message;
  EXPECT_NE(big.error().message.find("Free space"), std::string::npos) << big.error().message;
  EXPECT_TRUE(little) << little.error().message;
  EXPECT_FALSE(mixed[0]);
  EXPECT_TRUE(mixed[1]);
  EXPECT_TRUE(
      apply(**opened, {{"kv", "big", std::string(4 << 20, 'y')}}));  // There is space again.
  opened->reset();
  Tables tables = reload();
  EXPECT_EQ(tables["kv"].size(), 4u);
  EXPECT_FALSE(tables["kv"].contains("half"));
  EXPECT_EQ(tables["kv"]["big"][0], 'y');
}

TEST_F(StorageTest, AFileInUseDamagedOrUnwritableIsOneClearMessage) {
  DiskThread disk;
  {
    auto first = SqliteStorage::open(file(), disk, mailbox.post());
    ASSERT_TRUE(first);
    auto second = SqliteStorage::open(file(), disk, mailbox.post());
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("another head"), std::string::npos)
        << second.error().message;
  }
  std::string damaged = dir + "/damaged.sqlite";
  std::ofstream(damaged) << std::string(8192, 'x');
  auto broken = SqliteStorage::open(damaged, disk, mailbox.post());
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find(damaged), std::string::npos);
  EXPECT_NE(broken.error().message.find("damaged"), std::string::npos) << broken.error().message;
  EXPECT_NE(broken.error().message.find("Move the file away"), std::string::npos);

  auto missing = SqliteStorage::open(dir + "/no/such/head.sqlite", disk, mailbox.post());
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/no/such/"), std::string::npos)
      << missing.error().message;
  EXPECT_NE(missing.error().message.find("--state-dir"), std::string::npos);
}

TEST_F(StorageTest, ANewerFormatIsRefused) {
  reload();
  {
    auto db = SqliteDb::open({file(), "the head's state", true, ""});
    ASSERT_TRUE(db);
    ASSERT_TRUE((*db)->exec("PRAGMA user_version=2"));
  }
  DiskThread disk;
  auto storage = SqliteStorage::open(file(), disk, mailbox.post());
  ASSERT_FALSE(storage);
  EXPECT_NE(storage.error().message.find("newer release"), std::string::npos)
      << storage.error().message;
}

class HistoryTest : public StorageTest {
 protected:
  void open() {
    history.reset();
    auto opened = SqliteHistory::open(dir + "/history.sqlite", settings, disk, mailbox.post());
    ASSERT_TRUE(opened) << opened.error().message;
    history = std::move(*opened);
  }
  static proto::TaskEventBatch batch(int job, int64_t count, size_t bytes) {
    proto::TaskEventBatch out;
    out.set_job_id(job_id_from_int(static_cast<uint32_t>(job)).binary());
    out.set_count(count);
    out.set_min_time_us(count);
    out.set_packed(std::string(bytes, 'e'));
    return out;
  }
  proto::GetTaskEventsReply query(int64_t after = 0, int64_t max_bytes = 0, int job = 0) {
    proto::GetTaskEventsRequest request;
    request.set_after_row(after);
    request.set_max_bytes(max_bytes);
    if (job) request.set_job_id(job_id_from_int(static_cast<uint32_t>(job)).binary());
    return ask(request);
  }
  proto::GetTaskEventsReply ask(const proto::GetTaskEventsRequest& request) {
    std::optional<Result<proto::GetTaskEventsReply>> got;
    history->query(request,
                   [&](Result<proto::GetTaskEventsReply> reply) { got = std::move(reply); });
    EXPECT_TRUE(mailbox.run_until([&] { return got.has_value(); }));
    return **got;
  }

  void append(proto::TaskEventBatch batch, std::string source = "") {
    history->append(std::move(batch), std::move(source), [this](Result<History::Outcome> outcome) {
      answers.push_back(std::move(outcome));
    });
  }

  Settings settings;
  DiskThread disk;
  std::unique_ptr<SqliteHistory> history;
  std::vector<Result<History::Outcome>> answers;
};

TEST_F(HistoryTest, BatchesComeBackInOrderAndInPieces) {
  open();
  for (int i = 1; i <= 10; ++i) append(batch(i % 2 + 1, i, 1000));
  EXPECT_EQ(query().batches_size(), 10);  // A query sees every batch appended before it.
  EXPECT_EQ(query(0, 0, 2).batches_size(), 5);
  int64_t after = 0;
  std::vector<int64_t> seen;
  for (bool more = true; more;) {
    auto part = query(after, 2500);
    ASSERT_LE(part.batches_size(), 2);
    for (const auto& b : part.batches()) seen.push_back(b.count());
    after = part.next_row();
    more = part.more();
  }
  EXPECT_EQ(seen, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(query(0, 1).batches_size(), 1);  // At least one batch, even if it exceeds the limit.
  open();
  EXPECT_EQ(query().batches_size(), 10);
}

TEST_F(HistoryTest, DigestsComeWithoutTheirBatchesAndBatchesByTheirRows) {
  open();
  for (int i = 1; i <= 4; ++i) {
    auto one = batch(1, i, 1000);
    if (i != 3) one.set_digest("digest " + std::to_string(i));
    append(one);
  }
  proto::GetTaskEventsRequest request;
  request.set_digests_only(true);
  auto reply = ask(request);
  ASSERT_EQ(reply.batches_size(), 4);
  EXPECT_EQ(reply.batches(1).digest(), "digest 2");
  EXPECT_TRUE(reply.batches(1).packed().empty());
  // A batch of very many kinds of tasks has no digest, so it comes whole.
  EXPECT_EQ(reply.batches(2).packed().size(), 1000u);
  proto::GetTaskEventsRequest some;
  for (int64_t row : {reply.batches(3).row(), int64_t{999}, reply.batches(0).row()})
    some.add_rows(row);
  auto found = ask(some);
  ASSERT_EQ(found.batches_size(), 2);  // Rows that do not exist are left out.
  EXPECT_EQ(found.batches(0).count(), 4);
  EXPECT_EQ(found.batches(1).count(), 1);
  EXPECT_EQ(found.batches(1).packed().size(), 1000u);
  EXPECT_FALSE(found.more());
  some.set_max_bytes(1);
  EXPECT_EQ(ask(some).batches_size(), 1);
  EXPECT_TRUE(ask(some).more());
}

TEST_F(HistoryTest, ARepeatedBatchIsStoredOnceAndAnsweredAgain) {
  open();
  auto numbered = [&](const std::string& source, int64_t number, int64_t count) {
    auto one = batch(1, static_cast<int>(count), 100);
    one.set_row(number);
    append(one, source);
  };
  numbered("a", 1, 1);
  numbered("a", 2, 2);
  numbered("b", 1, 3);
  EXPECT_EQ(query().batches_size(), 3);
  EXPECT_EQ(answers.size(), 3u);
  open();  // The head was killed before its answers arrived, so the senders repeat their batches.
  numbered("a", 1, 1);
  numbered("a", 2, 2);
  numbered("a", 3, 4);
  numbered("b", 2, 5);
  auto reply = query();
  ASSERT_EQ(reply.batches_size(), 5);
  EXPECT_EQ(reply.batches(3).count(), 4);
  EXPECT_EQ(reply.batches(4).count(), 5);
  std::vector<bool> new_ones;
  for (const auto& outcome : answers) {
    ASSERT_TRUE(outcome);
    new_ones.push_back(*outcome == History::Outcome::kWritten);
  }
  EXPECT_EQ(new_ones, std::vector<bool>({true, true, true, false, false, true, true}));
}

TEST_F(HistoryTest, TheOldestGoFirstAndAreCounted) {
  settings.task_events_max_bytes = 5 * 1100;
  open();
  for (int i = 0; i < 20; ++i) {
    append(batch(1, 10, 1000));
    query();
  }
  auto reply = query();
  EXPECT_EQ(reply.batches_size(), 5);
  EXPECT_EQ(reply.dropped(), 150);
  auto reported = batch(1, 1, 10);
  reported.set_dropped(7);
  append(reported);
  open();
  EXPECT_GE(query().dropped(), 157);
}

TEST_F(HistoryTest, AFullQueueOrDiskDropsAndCounts) {
  settings.task_events_queue_bytes = 3 * 1100;
  open();
  std::promise<void> gate;
  disk.post([&] { gate.get_future().wait(); });
  for (int i = 0; i < 10; ++i) append(batch(1, 1, 1000));
  gate.set_value();
  auto reply = query();
  EXPECT_EQ(reply.batches_size(), 3);
  EXPECT_EQ(reply.dropped(), 7);

  std::signal(SIGXFSZ, SIG_IGN);
  settings.task_events_queue_bytes = 64 << 20;
  open();
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit small{256 * 1024, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  append(batch(1, 5, 2 << 20));
  reply = query();
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(reply.batches_size(), 3);
  EXPECT_EQ(reply.dropped(), 12);
  append(batch(1, 5, 2 << 20));
  EXPECT_EQ(query().batches_size(), 4);
}

}  // namespace
}  // namespace rt::head
