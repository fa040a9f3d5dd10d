// Lines for the person who runs the program: the output of workers, notices of the cluster, and
// errors that nobody has read. They are collected here and handed over in the background thread.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "common/proto/head.pb.h"
#include "worker/service/lock.h"
#include "worker/worker.h"

namespace rt::worker {

class Notices {
 public:
  // `wake` makes the thread that delivers look, and is called for each line. Both references must
  // outlive this object.
  Notices(const Options& options, const Context& context, std::function<void()> wake)
      : options_(options), context_(context), wake_(std::move(wake)) {}

  // Shows a notice of this process: in a worker at once, since the output of workers gets to the
  // driver anyway.
  void tell(std::string text) REQUIRES(worker_mutex);
  // Shows a driver's user something that went wrong in the cluster.
  void warn(std::string text) REQUIRES(worker_mutex) {
    if (options_.is_driver) warn(std::move(text), "raylet");
  }
  // Reports the failure of a task whose result nobody has looked at.
  void unhandled(const std::string& error) REQUIRES(worker_mutex);
  // Says, with what `text` returns, that an attempt failed and another one follows. After some in a
  // second only that there are more: a lost node fails thousands of tasks at the same time.
  void attempt_failed(const std::function<std::string()>& text) REQUIRES(worker_mutex);
  // Tells a driver once of each difference between its own build and a peer's.
  void met_build(const std::string& theirs) REQUIRES(worker_mutex);
  // The logs and notices in news of the head.
  void add(const proto::HeadEvent& event) REQUIRES(worker_mutex);

  // The reason for its end, which the node-manager gives just before.
  void set_last_words(const std::string& why) REQUIRES(worker_mutex) { last_words_ = why; }
  const std::string& last_words() const REQUIRES(worker_mutex) { return last_words_; }

  bool empty() const REQUIRES(worker_mutex) { return lines_.empty(); }
  // Hands the lines over, and releases the lock meanwhile.
  void deliver(WorkerLock& lock) REQUIRES(worker_mutex);
  // The session is over: nothing more is said of attempts.
  void close() REQUIRES(worker_mutex) { closed_ = true; }

 private:
  void warn(std::string text, std::string source) REQUIRES(worker_mutex);
  void add(DriverLine line) REQUIRES(worker_mutex);

  const Options& options_;
  const Context& context_;
  const std::function<void()> wake_;
  std::vector<DriverLine> lines_ GUARDED_BY(worker_mutex);
  std::string last_words_ GUARDED_BY(worker_mutex);
  int attempts_ GUARDED_BY(worker_mutex) = 0;  // Reported since attempts_since_us_.
  int64_t attempts_since_us_ GUARDED_BY(worker_mutex) = 0;
  std::set<std::string> build_differences_ GUARDED_BY(worker_mutex);
  bool closed_ GUARDED_BY(worker_mutex) = false;
};

}  // namespace rt::worker
