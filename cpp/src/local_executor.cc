#include "local_executor.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace ray::internal {

struct LocalExecutor::Core {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  int limit = 1;
  int running = 0;  // Threads that run a job, without those that wait.
  int idle = 0;
  bool gives_way = false;
  bool closed = false;
};

namespace {
// The executor of this thread, if it gives way.
thread_local std::shared_ptr<void> t_core;
}  // namespace

LocalExecutor::LocalExecutor(int limit, bool gives_way) : core_(std::make_shared<Core>()) {
  core_->limit = limit;
  core_->gives_way = gives_way;
}

LocalExecutor::~LocalExecutor() {
  std::lock_guard lock(core_->mutex);
  core_->closed = true;
  core_->changed.notify_all();
}

void LocalExecutor::submit(std::function<void()> job) {
  std::lock_guard lock(core_->mutex);
  core_->jobs.push_back(std::move(job));
  start_threads(core_);
}

void LocalExecutor::set_limit(int limit) {
  std::lock_guard lock(core_->mutex);
  core_->limit = limit;
  start_threads(core_);
}

// Needs the mutex.
void LocalExecutor::start_threads(const std::shared_ptr<Core>& core) {
  int room = core->limit - core->running;
  int wanted = std::min(room, static_cast<int>(core->jobs.size()));
  for (int i = core->idle; i < wanted; ++i) {
    ++core->idle;  // Counts as idle until it has its first job.
    std::thread([core] { run(core); }).detach();
  }
  if (wanted > 0) core->changed.notify_all();
}

void LocalExecutor::run(std::shared_ptr<Core> core) {
  if (core->gives_way) t_core = core;
  std::unique_lock lock(core->mutex);
  for (;;) {
    core->changed.wait(lock, [&] {
      return (!core->jobs.empty() && core->running < core->limit) ||
             (core->closed && core->jobs.empty());
    });
    if (core->jobs.empty()) break;
    auto job = std::move(core->jobs.front());
    core->jobs.pop_front();
    --core->idle;
    ++core->running;
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
    --core->running;
    ++core->idle;
  }
  --core->idle;
}

LocalExecutor::Waiting::Waiting() {
  auto core = std::static_pointer_cast<Core>(t_core);
  if (!core) return;
  std::lock_guard lock(core->mutex);
  --core->running;
  start_threads(core);
}

LocalExecutor::Waiting::~Waiting() {
  auto core = std::static_pointer_cast<Core>(t_core);
  if (!core) return;
  std::lock_guard lock(core->mutex);
  ++core->running;  // May exceed the limit for a moment.
}

}  // namespace ray::internal
