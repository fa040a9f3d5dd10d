// The line of a process that executes tasks: those that have arrived and not started, and how many
// run. Decides which of them starts next, when the arguments of a waiting one are fetched and given
// up, and which ones go back to their owners unstarted.
//
// Tasks start in the order in which they came, as far as their arguments are here. In an actor that
// runs one call at a time, no call overtakes an earlier one of the same caller, and none takes room
// in the store before it.
//
// Guarded by the worker's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "common/base/status.h"
#include "worker/core/line_sink.h"
#include "worker/core/task_channel.h"

namespace rt::worker {

// A task as its line knows it. Whatever executes tasks derives its own class from this one.
class LineTask {
 public:
  // The connection over which it came. Null for the creation of the actor that this process is.
  const TaskChannel* caller = nullptr;
  // Names it to its caller.
  uint32_t seq = 0;
  // An argument is an error or cannot be read: no code of the user runs for it.
  bool failed = false;

  // Whether all arguments are here.
  bool is_ready() const {
    return unplaced_ == 0 && (stored_ == Stored::kNone || stored_ == Stored::kHere);
  }
  // Whether it has arguments that were not asked of the store, or may turn out to be there.
  bool is_unasked() const { return unplaced_ > 0 || stored_ == Stored::kWanted; }
  // Whether its arguments were asked of the store and have not come.
  bool is_fetching() const { return stored_ == Stored::kFetching; }

 private:
  friend class TaskLine;
  // The arguments that lie in object stores, all of them together.
  enum class Stored : uint8_t { kNone, kWanted, kFetching, kHere };
  // Arguments whose owner has not said where they are.
  int unplaced_ = 0;
  Stored stored_ = Stored::kNone;
  bool waits_ = false;  // in the line
};

class TaskLine {
 public:
  using Tasks = std::deque<std::shared_ptr<LineTask>>;

  // `sink` must outlive this object.
  explicit TaskLine(LineSink& sink) : sink_(sink) {}

  // This process is an actor from here on: what it has belongs to it. `in_order`: it runs one call
  // at a time.
  void become_actor(bool in_order);

  // A task has come. `unplaced`: the number of its arguments whose place is not known, each of
  // which is followed by argument_placed(); `in_store`: there are others that must be fetched.
  void add(std::shared_ptr<LineTask> task, int unplaced, bool in_store);
  // An argument has come with the answer of its owner, or cannot be had, or lies in a store.
  void argument_placed(const std::shared_ptr<LineTask>& task, bool in_store);
  // The answer to LineSink::fetch_arguments().
  void arguments_fetched(LineTask& task);

  // Takes the task that runs next; null when none can run yet. Each one is followed by ended().
  std::shared_ptr<LineTask> next();
  // A task that was taken runs no more.
  void ended();

  // A thread that executes a task begins or ends to wait for other tasks. Those that wait here may
  // be among them, so they go elsewhere; an actor's calls cannot, and leave their room in the store
  // to what the one that runs waits for. True if that changes is_blocked().
  bool thread_blocked(bool blocked);
  // The owner wants `limit` tasks back, the last ones first.
  void take_back(const TaskChannel& caller, size_t limit) { give_back(&caller, limit); }
  // The owner does not want the task. False if it does not wait here.
  bool cancel(const TaskChannel& caller, uint32_t seq);
  // The connection has closed: nobody waits for its tasks.
  void caller_gone(const TaskChannel& caller);
  // The actor has left: it refuses the calls that wait, and all that come.
  void refuse_calls();

  bool any_ready() const { return first_ready() != tasks_.end(); }
  bool empty() const { return tasks_.empty(); }
  // Whether the actor has left.
  bool refuses() const { return refuses_; }
  // How many tasks run.
  int running() const { return running_; }
  bool is_actor() const { return kind_ != Kind::kPool; }
  // Whether it is an actor that runs one call at a time.
  bool is_plain_actor() const { return kind_ == Kind::kPlainActor; }
  // Whether a thread that executes a task waits for others.
  bool is_blocked() const { return blocked_threads_ > 0; }
  const Tasks& tasks() const { return tasks_; }
  void check_invariants() const;

 private:
  enum class Kind : uint8_t { kPool, kPlainActor, kConcurrentActor };

  Tasks::const_iterator first_ready() const;
  // Gives tasks of all callers back if `only` is null.
  void give_back(const TaskChannel* only, size_t limit);
  // Whether what waits here may take room in the store.
  bool may_fetch() const { return !is_blocked() || !is_plain_actor(); }
  // Fetches the arguments of this task, or those whose turn comes before.
  void fetch(const std::shared_ptr<LineTask>& task);
  void fetch_in_order();
  void start_fetch(const std::shared_ptr<LineTask>& task);
  void give_up(LineTask& task);
  // The task leaves the line without having started.
  void never_starts(LineTask& task);

  LineSink& sink_;
  Tasks tasks_;
  int running_ = 0;
  int unasked_ = 0;  // the number of tasks that are so
  int blocked_threads_ = 0;
  Kind kind_ = Kind::kPool;
  bool refuses_ = false;
};

}  // namespace rt::worker
