// Lines for the person who runs the program: the output of workers, notices of the cluster, and
// errors that nobody has read. They are collected here and handed over in the background thread.
//
// All methods are called with the worker's mutex held; deliver() releases it while it hands over.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "common/proto/head.pb.h"
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
  void tell(std::string text);
  // Shows a driver's user something that went wrong in the cluster.
  void warn(std::string text) { warn(std::move(text), "raylet"); }
  // Reports the failure of a task whose result nobody has looked at.
  void unhandled(const std::string& error);
  // Says, with what `text` returns, that an attempt failed and another one follows. After some in a
  // second only that there are more: a lost node fails thousands of tasks at the same time.
  void attempt_failed(const std::function<std::string()>& text);
  // Tells a driver once of each difference between its own build and a peer's.
  void met_build(const std::string& theirs);
  // The logs and notices in news of the head.
  void add(const proto::HeadEvent& event);

  // The reason for its end, which the node-manager gives just before.
  void set_last_words(const std::string& why) { last_words_ = why; }
  const std::string& last_words() const { return last_words_; }

  bool empty() const { return lines_.empty(); }
  void deliver(std::unique_lock<std::mutex>& lock);
  // The session is over: nothing more is said of attempts.
  void close() { closed_ = true; }

 private:
  void warn(std::string text, std::string source);
  void add(DriverLine line);

  const Options& options_;
  const Context& context_;
  const std::function<void()> wake_;
  std::vector<DriverLine> lines_;
  std::string last_words_;
  int attempts_ = 0;  // Reported since attempts_since_us_.
  int64_t attempts_since_us_ = 0;
  std::set<std::string> build_differences_;
  bool closed_ = false;
};

}  // namespace rt::worker
