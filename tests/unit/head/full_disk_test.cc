// The head's files on a file system without space: a small tmpfs, mounted in a mount namespace of
// the test's process.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>
#include <optional>

#include "common/base/ids.h"
#include "daemons/head/storage/sqlite_history.h"
#include "daemons/head/storage/sqlite_storage.h"

namespace rt::head {
namespace {

// Mounts the small file system. It is constructed before any thread starts, because only threads
// that start later share the new mount namespace.
class SmallDisk {
 public:
  SmallDisk() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "head_full_disk_XXXXXX").string();
    dir = ::mkdtemp(pattern.data());
    bool own = ::unshare(CLONE_NEWNS) == 0 &&
               ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    mounted = own && ::mount("none", dir.c_str(), "tmpfs", 0, "size=16m,mode=700") == 0;
  }
  ~SmallDisk() {
    if (mounted) ::umount2(dir.c_str(), MNT_DETACH);
    std::filesystem::remove_all(dir);
  }

  void fill() const {
    int fd = ::open(filler().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const std::string piece(4096, 'f');
    while (::write(fd, piece.data(), piece.size()) > 0) {}
    ::close(fd);
  }
  void give_back() const { std::filesystem::remove(filler()); }

  std::string dir;
  bool mounted = false;

 private:
  std::string filler() const { return dir + "/fill"; }
};

class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!small.mounted) GTEST_SKIP() << "file systems cannot be mounted here";
    disk.emplace();
  }

  // Runs posted tasks in the test's thread until the answer is there.
  template <class T>
  T await(std::optional<T>& answer) {
    while (!answer) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex);
        bool some =
            wake.wait_for(lock, std::chrono::seconds(20), [this] { return !tasks.empty(); });
        if (!some) throw std::runtime_error("no answer");
        task = std::move(tasks.front());
        tasks.erase(tasks.begin());
      }
      task();
    }
    return std::move(*answer);
  }
  PostTask post() {
    return [this](std::function<void()> task) {
      std::lock_guard lock(mutex);
      tasks.push_back(std::move(task));
      wake.notify_one();
    };
  }

  void open() {
    history.reset();
    auto opened = SqliteHistory::open(small.dir + "/history.sqlite", settings, *disk, post());
    ASSERT_TRUE(opened) << opened.error().message;
    history = std::move(*opened);
  }
  // Appends a batch of one event, which is recognised by its time, `number`.
  Status append(int64_t number, size_t bytes = 50'000) {
    proto::TaskEventBatch batch;
    batch.set_job_id(job_id_from_int(1).binary());
    batch.set_count(1);
    batch.set_min_time_us(number);
    batch.set_packed(std::string(bytes, 'e'));
    batch.set_digest("digest");
    std::optional<Result<History::Outcome>> taken;
    history->append(std::move(batch), "",
                    [&](Result<History::Outcome> outcome) { taken = std::move(outcome); });
    auto outcome = await(taken);
    return outcome ? Status() : Status(outcome.error());
  }
  proto::GetTaskEventsReply query() {
    proto::GetTaskEventsRequest request;
    request.set_digests_only(true);
    std::optional<Result<proto::GetTaskEventsReply>> got;
    history->query(request,
                   [&](Result<proto::GetTaskEventsReply> reply) { got = std::move(reply); });
    return *await(got);
  }
  Status probe() {
    std::optional<Status> probed;
    history->probe([&](Status outcome) { probed = outcome; });
    return await(probed);
  }
  Status apply(Storage& storage, Batch batch) {
    std::optional<Status> applied;
    storage.apply(std::move(batch), [&](Status outcome) { applied = outcome; });
    return await(applied);
  }

  SmallDisk small;
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::function<void()>> tasks;  // Guarded by `mutex`.
  Settings settings;
  std::optional<DiskThread> disk;
  std::unique_ptr<SqliteHistory> history;
};

TEST_F(FullDisk, TheOldestTaskEventsMakeRoomForTheNewest) {
  settings.task_events_min_bytes = 1'000'000;
  open();
  constexpr int kBefore = 100, kAfter = 300;
  for (int i = 1; i <= kBefore; ++i) ASSERT_TRUE(append(i));
  small.fill();
  for (int i = kBefore + 1; i <= kBefore + kAfter; ++i) {
    Status kept = append(i);
    ASSERT_TRUE(kept) << i << ": " << kept.error().message;
  }
  auto reply = query();
  const int kept = reply.batches_size();
  ASSERT_GE(kept, 20);  // task_events_min_bytes are kept at least.
  EXPECT_EQ(kept + reply.dropped(), kBefore + kAfter);
  for (int i = 0; i < kept; ++i)
    EXPECT_EQ(reply.batches(i).min_time_us(), kBefore + kAfter - kept + 1 + i);
  small.give_back();
  open();
  EXPECT_EQ(query().dropped(), reply.dropped());
  EXPECT_EQ(query().batches_size(), kept);
}

TEST_F(FullDisk, BelowTheFloorTheNewestAreDroppedAndCounted) {
  settings.task_events_min_bytes = 100'000'000;
  open();
  for (int i = 1; i <= 100; ++i) ASSERT_TRUE(append(i));
  small.fill();
  int failed = 0;
  Status last;
  for (int i = 101; i <= 200; ++i) {
    last = append(i);
    failed += !last;
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, Code::kOutOfDisk);
  bool refused = false;
  for (int i = 0; i < 10'000 && !refused; ++i)
    refused = !probe();  // A single page may still find room at first.
  EXPECT_TRUE(refused);
  EXPECT_EQ(query().dropped(), failed);
  EXPECT_EQ(query().batches(0).min_time_us(), 1);
  small.give_back();
  EXPECT_TRUE(probe());
  EXPECT_TRUE(append(201));
  EXPECT_EQ(query().dropped(), failed);
  EXPECT_EQ(query().batches_size(), 201 - failed);
}

// A batch that would not fit even if everything else were erased erases nothing.
TEST_F(FullDisk, ABatchThatCannotFitErasesNothing) {
  settings.task_events_min_bytes = 1'000'000;
  open();
  for (int i = 1; i <= 100; ++i) ASSERT_TRUE(append(i));
  small.fill();
  EXPECT_FALSE(append(101, 12 << 20));
  EXPECT_EQ(query().dropped(), 1);
  EXPECT_EQ(query().batches_size(), 100);
}

TEST_F(FullDisk, ErasingAMissingKeyFailsOnAFullDisk) {
  auto opened = SqliteStorage::open(small.dir + "/head.sqlite", *disk, post());
  ASSERT_TRUE(opened);
  small.fill();
  Status written;
  for (int i = 0; i < 1000 && written; ++i)
    written = apply(**opened, {{"kv", "key" + std::to_string(i), std::string(10'000, 'v')}});
  ASSERT_FALSE(written);
  EXPECT_FALSE(apply(**opened, {{"kv", "never there", std::nullopt}}));
  small.give_back();
  EXPECT_TRUE(apply(**opened, {{"kv", "never there", std::nullopt}}));
}

}  // namespace
}  // namespace rt::head
