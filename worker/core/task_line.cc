#include "worker/core/task_line.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace rt::worker {

void TaskLine::become_actor(bool in_order) {
  RT_CHECK(kind_ == Kind::kPool);
  kind_ = in_order ? Kind::kPlainActor : Kind::kConcurrentActor;
}

void TaskLine::add(std::shared_ptr<LineTask> task, int unplaced, bool in_store) {
  if (refuses_) return sink_.refuse_call(*task);
  task->unplaced_ = unplaced;
  task->stored_ = in_store ? LineTask::Stored::kWanted : LineTask::Stored::kNone;
  task->waits_ = true;
  tasks_.push_back(std::move(task));
  if (in_store) fetch(tasks_.back());
}

void TaskLine::argument_placed(const std::shared_ptr<LineTask>& task, bool in_store) {
  // It went back to its owner meanwhile.
  if (!task->waits_) return;
  RT_CHECK(task->unplaced_ > 0);
  --task->unplaced_;
  if (in_store) task->stored_ = LineTask::Stored::kWanted;
  fetch(task);
}

void TaskLine::arguments_fetched(LineTask& task) {
  if (!task.waits_) return;
  RT_CHECK(task.is_fetching());
  task.stored_ = LineTask::Stored::kHere;
}

// None is fetched before the places of all are known, since they take their room together.
void TaskLine::fetch(const std::shared_ptr<LineTask>& task) {
  if (task->stored_ != LineTask::Stored::kWanted || task->unplaced_ > 0 || !may_fetch()) return;
  task->stored_ = LineTask::Stored::kFetching;
  sink_.fetch_arguments(task);
}

void TaskLine::give_up(LineTask& task) {
  if (task.stored_ != LineTask::Stored::kFetching && task.stored_ != LineTask::Stored::kHere)
    return;
  task.stored_ = LineTask::Stored::kWanted;
  sink_.give_up_arguments(task);
}

TaskLine::Tasks::const_iterator TaskLine::first_ready() const {
  std::vector<const TaskChannel*> held_up;  // callers with a call that is not ready
  for (auto it = tasks_.begin(); it != tasks_.end(); ++it) {
    const TaskChannel* caller = (*it)->caller;
    if (std::find(held_up.begin(), held_up.end(), caller) != held_up.end()) continue;
    if ((*it)->is_ready()) return it;
    if (is_plain_actor()) held_up.push_back(caller);
  }
  return tasks_.end();
}

std::shared_ptr<LineTask> TaskLine::next() {
  const auto ready = first_ready();
  if (ready == tasks_.end()) return nullptr;
  auto task = std::move(tasks_[static_cast<size_t>(ready - tasks_.begin())]);
  tasks_.erase(ready);
  task->waits_ = false;
  ++running_;
  return task;
}

void TaskLine::ended() {
  RT_CHECK(running_ > 0);
  --running_;
}

void TaskLine::never_starts(LineTask& task) {
  task.waits_ = false;
  give_up(task);
}

void TaskLine::give_back(const TaskChannel* only, size_t limit) {
  // Calls belong to the actor, whatever their callers believe.
  if (is_actor()) return;
  for (size_t i = tasks_.size(); i-- > 0 && limit > 0;) {
    if (only && tasks_[i]->caller != only) continue;
    sink_.return_task(*tasks_[i]);
    never_starts(*tasks_[i]);
    tasks_.erase(tasks_.begin() + static_cast<ptrdiff_t>(i));
    --limit;
  }
}

bool TaskLine::cancel(const TaskChannel& caller, uint32_t seq) {
  const auto waiting = std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& task) {
    return task->caller == &caller && task->seq == seq;
  });
  if (waiting == tasks_.end()) return false;
  sink_.return_task(**waiting);
  never_starts(**waiting);
  tasks_.erase(waiting);
  return true;
}

void TaskLine::caller_gone(const TaskChannel& caller) {
  std::erase_if(tasks_, [&](const auto& task) {
    if (task->caller != &caller) return false;
    never_starts(*task);
    return true;
  });
}

void TaskLine::refuse_calls() {
  refuses_ = true;
  for (const auto& task : std::exchange(tasks_, {})) {
    sink_.refuse_call(*task);
    never_starts(*task);
  }
}

bool TaskLine::thread_blocked(bool blocked) {
  const bool before = is_blocked();
  blocked_threads_ += blocked ? 1 : -1;
  if (is_blocked() == before) return false;
  sink_.tell_blocked(is_blocked());
  if (is_blocked()) give_back(nullptr, tasks_.size());
  if (!is_plain_actor()) return true;
  for (const auto& task : tasks_) {
    // A call that has failed is answered without its other arguments.
    if (!is_blocked()) {
      fetch(task);
    } else if (!task->failed) {
      give_up(*task);
    }
  }
  return true;
}

void TaskLine::check_invariants() const {
  RT_CHECK(running_ >= 0 && (!refuses_ || (is_actor() && tasks_.empty())));
  for (const auto& task : tasks_) {
    RT_CHECK(task->waits_ && task->unplaced_ >= 0);
    RT_CHECK(task->caller || is_actor());
    const bool has_asked = task->is_fetching() || task->stored_ == LineTask::Stored::kHere;
    RT_CHECK(!has_asked || task->unplaced_ == 0);
    // Nothing waits in the line that could be had.
    RT_CHECK(task->stored_ != LineTask::Stored::kWanted || task->unplaced_ > 0 || !may_fetch());
    RT_CHECK(!has_asked || task->failed || may_fetch());
  }
}

}  // namespace rt::worker
