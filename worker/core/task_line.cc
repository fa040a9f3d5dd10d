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
  unasked_ += task->is_unasked();
  tasks_.push_back(std::move(task));
  if (in_store) fetch(tasks_.back());
}

void TaskLine::argument_placed(const std::shared_ptr<LineTask>& task, bool in_store) {
  // It went back to its owner meanwhile.
  if (!task->waits_) return;
  RT_CHECK(task->unplaced_ > 0);
  --task->unplaced_;
  if (in_store) task->stored_ = LineTask::Stored::kWanted;
  if (task->is_unasked()) return fetch(task);
  // All have come with the answers of their owners. Others may have waited for that.
  --unasked_;
  if (is_plain_actor()) fetch_in_order();
}

void TaskLine::arguments_fetched(LineTask& task) {
  if (!task.waits_) return;
  RT_CHECK(task.is_fetching());
  task.stored_ = LineTask::Stored::kHere;
}

void TaskLine::fetch(const std::shared_ptr<LineTask>& task) {
  if (is_plain_actor() && unasked_ > 1) return fetch_in_order();
  start_fetch(task);
}

// Calls that do not overtake each other take their room in the order in which they run. One that
// has its room and waits for another, which cannot get any, would keep it for ever.
void TaskLine::fetch_in_order() {
  std::vector<const TaskChannel*> held_up;  // callers with a call whose places are not known
  for (size_t i = 0; i < tasks_.size() && unasked_ > 0 && may_fetch(); ++i) {
    const auto& task = tasks_[i];
    if (!task->is_unasked()) continue;
    if (std::find(held_up.begin(), held_up.end(), task->caller) != held_up.end()) continue;
    start_fetch(task);
    if (task->is_unasked()) held_up.push_back(task->caller);
  }
}

// None is fetched before the places of all are known, since they take their room together.
void TaskLine::start_fetch(const std::shared_ptr<LineTask>& task) {
  if (task->stored_ != LineTask::Stored::kWanted || task->unplaced_ > 0 || !may_fetch()) return;
  task->stored_ = LineTask::Stored::kFetching;
  --unasked_;
  sink_.fetch_arguments(task);
}

void TaskLine::give_up(LineTask& task) {
  if (task.stored_ != LineTask::Stored::kFetching && task.stored_ != LineTask::Stored::kHere)
    return;
  task.stored_ = LineTask::Stored::kWanted;
  unasked_ += task.waits_;
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
  unasked_ -= task.is_unasked();
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
  // Others may have waited for it.
  if (is_plain_actor()) fetch_in_order();
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
  if (!is_blocked()) {
    fetch_in_order();
    return true;
  }
  for (const auto& task : tasks_) {
    // A call that has failed is answered without its other arguments.
    if (!task->failed) give_up(*task);
  }
  return true;
}

void TaskLine::check_invariants() const {
  RT_CHECK(running_ >= 0 && (!refuses_ || (is_actor() && tasks_.empty())));
  int unasked = 0;
  std::vector<const TaskChannel*> held_up;
  for (const auto& task : tasks_) {
    RT_CHECK(task->waits_ && task->unplaced_ >= 0);
    RT_CHECK(task->caller || is_actor());
    unasked += task->is_unasked();
    const bool has_asked = task->is_fetching() || task->stored_ == LineTask::Stored::kHere;
    RT_CHECK(!has_asked || task->unplaced_ == 0);
    RT_CHECK(!has_asked || task->failed || may_fetch());
    const bool is_held_up =
        std::find(held_up.begin(), held_up.end(), task->caller) != held_up.end();
    // Nothing waits in the line that could be had.
    RT_CHECK(!task->is_unasked() || task->unplaced_ > 0 || is_held_up || !may_fetch());
    if (is_plain_actor() && task->is_unasked()) held_up.push_back(task->caller);
  }
  RT_CHECK(unasked == unasked_);
}

}  // namespace rt::worker
