#include "local_executor.h"

#include <algorithm>
#include <deque>
#include <thread>

#include "common/base/mutex.h"

namespace ray::internal {

struct LocalExecutor::Core {
  Core(int most, bool gives) : gives_way(gives), limit(most) {}

  // Whether a thread that waits has something to do, which may be to end.
  bool any_news() const REQUIRES(mutex) { return jobs.empty() ? closed : running < limit; }

  const bool gives_way;
  rt::Mutex mutex;
  rt::CondVar changed;
  std::deque<std::function<void()>> jobs GUARDED_BY(mutex);
  int limit GUARDED_BY(mutex);
  int running GUARDED_BY(mutex) = 0;  // Threads that run a job, without those that wait.
  int idle GUARDED_BY(mutex) = 0;
  bool closed GUARDED_BY(mutex) = false;
};

namespace {
// The executor of this thread, if it gives way.
thread_local std::shared_ptr<void> t_core;
}  // namespace

LocalExecutor::LocalExecutor(int limit, bool gives_way)
    : core_(std::make_shared<Core>(limit, gives_way)) {}

LocalExecutor::~LocalExecutor() {
  rt::MutexLock lock(core_->mutex);
  core_->closed = true;
  core_->changed.notify_all();
}

void LocalExecutor::submit(std::function<void()> job) {
  rt::MutexLock lock(core_->mutex);
  core_->jobs.push_back(std::move(job));
  start_threads(core_);
}

void LocalExecutor::set_limit(int limit) {
  rt::MutexLock lock(core_->mutex);
  core_->limit = limit;
  start_threads(core_);
}

void LocalExecutor::start_threads(const std::shared_ptr<Core>& core) REQUIRES(core->mutex) {
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
  rt::MutexLock lock(core->mutex);
  for (;;) {
    while (!core->any_news()) core->changed.wait(core->mutex);
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
  rt::MutexLock lock(core->mutex);
  --core->running;
  start_threads(core);
}

LocalExecutor::Waiting::~Waiting() {
  auto core = std::static_pointer_cast<Core>(t_core);
  if (!core) return;
  rt::MutexLock lock(core->mutex);
  ++core->running;  // May exceed the limit for a moment.
}

}  // namespace ray::internal
