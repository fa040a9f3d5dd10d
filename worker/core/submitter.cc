#include "worker/core/submitter.h"

#include <algorithm>

#include "common/base/status.h"
#include "worker/core/death.h"
#include "worker/core/pipelining.h"

namespace rt::worker {

namespace {

// How long another node may take to grant a lease that it was asked for because of a redirect.
constexpr int64_t kWithdrawnAfterUs = 2'000'000;
// tick() looks no more often than this.
constexpr int64_t kTickPaceUs = 1000;

int64_t idle_timeout_us(const Settings& settings) { return settings.lease_idle_timeout_ms * 1000; }

// Has tick() called when a lease that stays unused, or a request without answer, is to be given up.
void schedule_tick(const Settings& settings, int64_t& next_tick_us, Now now) {
  const int64_t due_us = now.steady_us + idle_timeout_us(settings);
  if (next_tick_us < 0 || next_tick_us > due_us) next_tick_us = due_us;
}

// Tells the class which nodes hold the bundles of its group now. Returns true when the waiting
// tasks of the class must fail because the group was removed.
bool update_places(SchedulingClass& c, const GroupView& view) {
  const GroupId& id = c.group->group();
  const bool removed = view.removed(id);
  return c.group->move_to(view.targets(id, c.group->bundle_index(), c.resources), removed) &&
         !view.gone_before(id);
}

// The node has granted a lease, so its demand is one less. Returns whether the lease is of use.
bool take_grant(const Settings& settings, SchedulingClass& c, const NodeKey& node) {
  if (c.group) {
    c.group->granted(node);
    if (c.group->in_many_places() && missing_leases(settings, c) == 0) return false;
  } else if (node.is_nil()) {
    if (c.local_want > 0) --c.local_want;
  } else if (auto it = c.remotes.find(node); it != c.remotes.end()) {
    if (--it->second.want <= 0) c.remotes.erase(it);
  }
  return needed_leases(settings, c) > 0 || !c.queue.empty();
}

// The numbers of a node-manager's answers grow, and its connection delivers them in order.
void note_answer(uint64_t& last_answer, uint64_t answer) {
  last_answer = std::max(last_answer, answer);
}

}  // namespace

Submitter::Submitter(SubmitSink& sink, const Settings& settings, const GroupView* groups)
    : sink_(sink), settings_(settings), groups_(groups) {}

SchedulingClass* Submitter::scheduling_class(const proto::TaskTemplate& spec) {
  auto& slot = classes_[class_key(spec)];
  if (!slot) {
    slot = make_class(spec, next_class_++);
    class_by_id_[slot->id] = slot.get();
    if (slot->group) {
      classes_of_group_[slot->group->group()].push_back(slot.get());
      if (groups_) update_places(*slot, *groups_);
    }
  }
  ++slot->users;
  return slot.get();
}

void Submitter::release(SchedulingClass* c) {
  if (--c->users > 0 || !c->group) return;
  RT_CHECK(c->queue.empty());
  while (!c->leases.empty()) drop_lease(*c->leases.back(), false);
  update_demand(*c);
  auto of_group = classes_of_group_.find(c->group->group());
  std::erase(of_group->second, c);
  if (of_group->second.empty()) classes_of_group_.erase(of_group);
  class_by_id_.erase(c->id);
  std::erase_if(classes_, [c](const auto& item) { return item.second.get() == c; });
}

void Submitter::group_moved(const GroupId& id) {
  auto found = classes_of_group_.find(id);
  if (found == classes_of_group_.end() || !groups_ || closed_) return;
  for (SchedulingClass* c : found->second) {
    if (update_places(*c, *groups_)) fail_queue(*c, std::nullopt);
    update_demand(*c);
  }
}

void Submitter::submit(Task* task) {
  SchedulingClass& c = *class_of(*task);
  ++pending_;
  c.queue.push_back(task);
  // Behind a backlog nothing changes for this task: replies and grants move the queue on. The
  // demand follows the growth of the queue in steps that double, not task by task.
  size_t n = c.queue.size();
  if (n == 1) {
    pump(c);
  } else if ((n & (n - 1)) == 0 || (n & 255) == 0) {
    update_demand(c);
  }
}

void Submitter::push(Lease& lease, Task* task) {
  task->seq = lease.next_seq++;
  task->estimate_us = std::max<int64_t>(1, task->function->average_us);
  if (!lease.in_flight.empty()) ++lease.owner_class->unstarted_in_flight;
  lease.in_flight.push_back(task);
  lease.in_flight_us += task->estimate_us;
  sink_.push_task(lease, *task);
}

void Submitter::pump(SchedulingClass& c) {
  if (closed_) return fail_queue(c, *closed_);
  while (!c.queue.empty()) {
    Lease* lease = least_loaded(settings_, c, *c.queue.front());
    if (!lease) break;
    Task* task = c.queue.front();
    c.queue.pop_front();
    push(*lease, task);
  }
  if (c.queue.empty()) rebalance(c);
  update_demand(c);
}

// Takes back part of the unstarted work of the fullest lease when another lease is idle.
void Submitter::rebalance(SchedulingClass& c) {
  if (c.unstarted_in_flight == 0) return;
  Lease* fullest = nullptr;
  bool idle = false;
  for (Lease* lease : c.leases) {
    if (lease->state != Lease::State::kReady || lease->revoked) continue;
    if (lease->in_flight.empty()) {
      idle = true;
    } else if (lease->overdue) {
      // All of its unstarted work is on its way back.
      continue;
    } else if (!fullest || lease->in_flight.size() > fullest->in_flight.size()) {
      fullest = lease;
    }
  }
  if (!idle || !fullest || fullest->take_back_pending || fullest->in_flight.size() < 2) return;
  // A few microseconds of work are not worth the messages.
  if (fullest->in_flight_us < 500 && fullest->in_flight.front()->function->average_us >= 0 &&
      fullest->in_flight.size() < 16) {
    // became_overdue() notices when it takes longer.
    fullest->take_back_pending = true;
    return;
  }
  fullest->take_back_pending = true;
  sink_.take_back(*fullest, static_cast<int>(fullest->in_flight.size() / 2));
}

void Submitter::update_demand(SchedulingClass& c) {
  int needed = missing_leases(settings_, c);
  const std::string& what =
      c.queue.empty() ? std::string() : c.queue.front()->function->spec.name();
  if (c.group) {
    for (const auto& [node, want, backlog] :
         c.group->levels(needed, static_cast<int64_t>(c.queue.size())))
      send_demand(node, c, want, backlog, what);
    return;
  }
  for (auto& [node, remote] : c.remotes) {
    int want = std::min(remote.want, needed);
    if (want != remote.want) {
      remote.want = want;
      send_demand(node, c, want, 0, what);
    }
    needed -= want;
  }
  std::erase_if(c.remotes, [](const auto& item) { return item.second.want == 0; });
  if (needed == c.local_want) return;
  // A small decrease under load is not worth a message: grants beyond the need are returned.
  if (needed != 0 && needed < c.local_want && c.local_want - needed < c.local_want / 4) return;
  c.local_want = needed;
  send_demand(NodeKey::nil(), c, needed, static_cast<int64_t>(c.queue.size()), what);
}

void Submitter::send_demand(const NodeKey& node, const SchedulingClass& c, int want,
                            int64_t backlog, const std::string& what) {
  auto last = last_answer_.find(node);
  sink_.send_demand(node, c, want, backlog, what, last == last_answer_.end() ? 0 : last->second);
}

void Submitter::lease_granted(const NodeKey& node, uint64_t class_id, uint64_t lease_id,
                              const proto::WorkerAddress& worker, int pid, Now now,
                              std::vector<std::string> gpu_ids) {
  note_answer(last_answer_[node], lease_id);
  auto found = class_by_id_.find(class_id);
  // The class may have been freed since this process asked.
  SchedulingClass* c = found == class_by_id_.end() ? nullptr : found->second;
  auto lease = std::make_unique<Lease>();
  lease->key = next_lease_++;
  lease->id = lease_id;
  lease->node = node;
  lease->owner_class = c;
  lease->worker = worker;
  lease->pid = pid;
  lease->gpu_ids = std::move(gpu_ids);
  lease->idle_since_us = now.steady_us;
  if (!c || !take_grant(settings_, *c, node)) {
    sink_.return_lease(*lease, false);
    return;
  }
  Lease& added = *lease;
  c->leases.push_back(&added);
  leases_[added.key] = std::move(lease);
  schedule_tick(settings_, next_tick_us_, now);
  // Other nodes were asked for the same lease.
  if (c->group && c->group->in_many_places()) update_demand(*c);
  sink_.connect_lease(added);
}

void Submitter::lease_ready(uint64_t key, TaskChannel& channel, Now now) {
  Lease* lease = lease_of(key);
  if (!lease || lease->state != Lease::State::kConnecting) return;
  lease->state = Lease::State::kReady;
  lease->channel = &channel;
  lease->idle_since_us = now.steady_us;
  pump(*lease->owner_class);
}

const Lease* Submitter::find_lease(uint64_t key) const {
  auto it = leases_.find(key);
  return it == leases_.end() ? nullptr : it->second.get();
}

Lease* Submitter::lease_of(uint64_t key) {
  auto it = leases_.find(key);
  return it == leases_.end() ? nullptr : it->second.get();
}

Task* Submitter::reply_of(uint64_t key, uint32_t seq) {
  Lease* lease = lease_of(key);
  if (!lease) return nullptr;
  // Replies come in order, except for tasks taken back from the end.
  for (Task* task : lease->in_flight) {
    if (task->seq == seq) return task;
    if (task->seq > seq) break;
  }
  for (auto it = lease->in_flight.rbegin(); it != lease->in_flight.rend(); ++it) {
    if ((*it)->seq == seq) return *it;
  }
  return nullptr;
}

void Submitter::remove_in_flight(Lease& lease, Task* task) {
  if (lease.in_flight.front() == task) {
    lease.in_flight.pop_front();
    lease.overdue = false;
  } else if (lease.in_flight.back() == task) {
    // Tasks are taken back newest first.
    lease.in_flight.pop_back();
  } else {
    std::erase(lease.in_flight, task);
  }
  lease.in_flight_us -= task->estimate_us;
  if (!lease.in_flight.empty()) --lease.owner_class->unstarted_in_flight;
}

void Submitter::worker_leaves(uint64_t key) {
  if (Lease* lease = lease_of(key)) lease->revoked = lease->leaving = true;
}

void Submitter::finished(uint64_t key, Task* task, int64_t duration_us, SteadyNow now) {
  Lease* lease = lease_of(key);
  RT_CHECK(lease);
  remove_in_flight(*lease, task);
  --pending_;
  task->function->measured(duration_us);
  lease->take_back_pending = lease->take_back_pending && lease->in_flight.size() > 1;
  SchedulingClass& c = *lease->owner_class;
  if (lease->in_flight.empty()) {
    lease->idle_since_us = now.steady_us;
    // The next task of a class whose nodes take turns asks anew, so that it gets the next node.
    if (lease->revoked || (c.takes_turns && c.queue.empty())) {
      drop_lease(*lease, false);
      pump(c);
      return;
    }
  }
  // Refills in large steps instead of task by task, so that one write carries many tasks.
  if (!c.queue.empty() &&
      (lease->in_flight.size() < 8 || lease->in_flight_us < settings_.pipeline_target_us / 2)) {
    pump(c);
  } else if (lease->in_flight.empty()) {
    rebalance(c);
    if (c.unstarted_in_flight == 0 && wants_leases(c)) update_demand(c);
  }
}

void Submitter::requeue(Task* task, SchedulingClass& c, bool started) {
  if (task->cancelled) {
    fail_cancelled(task);
  } else if (!started && c.group && c.group->removed()) {
    --pending_;
    sink_.fail_task(task, group_removed_error(*task));
  } else {
    c.queue.push_front(task);
  }
}

void Submitter::fail_cancelled(Task* task) {
  --pending_;
  sink_.fail_task(task, cancelled_error(*task));
}

void Submitter::retry(uint64_t key, Task* task, Cost cost, SteadyNow now) {
  Lease* lease = lease_of(key);
  RT_CHECK(lease);
  SchedulingClass& left = *lease->owner_class;
  remove_in_flight(*lease, task);
  if (lease->in_flight.empty()) {
    lease->idle_since_us = now.steady_us;
    if (lease->revoked) drop_lease(*lease, false);
  }
  task->count_attempt();
  if (cost == Cost::kRetry && task->retries_left > 0) --task->retries_left;
  SchedulingClass& c = *class_of(*task);
  requeue(task, c, /*started=*/true);
  pump(c);
  if (&c != &left) pump(left);
}

void Submitter::task_returned(uint64_t key, Task* task, SteadyNow now) {
  Lease* lease = lease_of(key);
  RT_CHECK(lease);
  remove_in_flight(*lease, task);
  lease->take_back_pending = false;
  SchedulingClass& c = *lease->owner_class;
  if (lease->in_flight.empty()) {
    lease->idle_since_us = now.steady_us;
    if (lease->revoked) drop_lease(*lease, false);
  }
  requeue(task, c, /*started=*/false);
  // The task should not go straight back to where it came from; least_loaded() prefers idle
  // leases.
  pump(c);
}

void Submitter::drop_lease(Lease& lease, bool failed) {
  sink_.return_lease(lease, failed);
  std::erase(lease.owner_class->leases, &lease);
  leases_.erase(lease.key);
}

void Submitter::lease_broken(uint64_t key) {
  Lease* lease = lease_of(key);
  if (!lease || lease->state == Lease::State::kBroken) return;
  SchedulingClass& c = *lease->owner_class;
  lease->state = Lease::State::kBroken;
  lease->channel = nullptr;
  if (!lease->in_flight.empty())
    c.unstarted_in_flight -= static_cast<int64_t>(lease->in_flight.size()) - 1;
  std::vector<Task*> lost(lease->in_flight.begin(), lease->in_flight.end());
  lease->in_flight.clear();
  if (lost.empty()) {
    drop_lease(*lease, true);
  } else {
    // The first task is blamed, because it was running. The others are requeued to run in
    // isolation, without using up a retry.
    std::vector<Task*> blamed{lost.front()};
    for (size_t i = lost.size(); i-- > 1;) {
      lost[i]->suspect = true;
      requeue(lost[i], c, /*started=*/false);
    }
    awaiting_exit_[key] = std::move(blamed);
    sink_.ask_exit(*lease);
  }
  pump(c);
}

void Submitter::worker_exit(uint64_t key, const proto::ExitInfo& info) {
  auto found = awaiting_exit_.find(key);
  if (found == awaiting_exit_.end()) return;
  std::vector<Task*> tasks = std::move(found->second);
  awaiting_exit_.erase(found);
  if (Lease* lease = lease_of(key)) drop_lease(*lease, true);
  settle(tasks, info);
}

void Submitter::settle(const std::vector<Task*>& tasks, const proto::ExitInfo& info) {
  for (Task* task : tasks) {
    if (task->retries_left == 0 || task->cancelled) {
      --pending_;
      sink_.fail_task(task,
                      task->cancelled ? cancelled_error(*task) : worker_death_error(*task, info));
      continue;
    }
    sink_.attempt_failed(*task, worker_death_error(*task, info));
    if (task->retries_left > 0) --task->retries_left;
    task->count_attempt();
    task->suspect = true;
    SchedulingClass& c = *class_of(*task);
    // The tasks that are queued now do not start any more, whenever the head says so.
    if (info.kind() == proto::ExitInfo::GROUP_REMOVED && c.group && c.group->set_removed(true))
      fail_queue(c, std::nullopt);
    requeue(task, c, /*started=*/true);
    pump(c);
  }
}

void Submitter::leases_revoked(const NodeKey& node, const std::vector<uint64_t>& lease_ids) {
  std::vector<Lease*> hit;
  for (auto& [key, lease] : leases_) {
    // A broken lease is returned as broken once its worker's end is known; until then the worker
    // may still run what was pushed to it.
    if (lease->state == Lease::State::kBroken) continue;
    if (lease->node == node &&
        std::find(lease_ids.begin(), lease_ids.end(), lease->id) != lease_ids.end())
      hit.push_back(lease.get());
  }
  for (Lease* lease : hit) {
    lease->revoked = true;
    SchedulingClass& c = *lease->owner_class;
    if (lease->in_flight.empty()) {
      drop_lease(*lease, false);
    } else if (lease->in_flight.size() > 1) {
      sink_.take_back(*lease, static_cast<int>(lease->in_flight.size()) - 1);
    }
    update_demand(c);
  }
}

void Submitter::redirected(const NodeKey& from, uint64_t class_id, const NodeKey& node, int count,
                           uint64_t answer, Now now) {
  note_answer(last_answer_[from], answer);
  auto found = class_by_id_.find(class_id);
  if (found == class_by_id_.end() || count <= 0) return;
  SchedulingClass& c = *found->second;
  int moved = count;
  if (from.is_nil()) {
    moved = std::min(count, c.local_want);
    c.local_want -= moved;
  } else if (auto asked = c.remotes.find(from); asked != c.remotes.end()) {
    moved = std::min(count, asked->second.want);
    asked->second.want -= moved;
    if (asked->second.want == 0) c.remotes.erase(asked);
  } else {
    return;
  }
  if (moved <= 0) return;
  // A demand is a level: at the local node the moved leases are a part of the one there.
  if (node.is_nil()) return update_demand(c);
  SchedulingClass::Remote& remote = c.remotes[node];
  remote.want += moved;
  remote.until_us = now.steady_us + kWithdrawnAfterUs;
  schedule_tick(settings_, next_tick_us_, now);
  send_demand(node, c, remote.want, static_cast<int64_t>(c.queue.size()),
              c.queue.empty() ? "" : c.queue.front()->function->spec.name());
  update_demand(c);
}

void Submitter::class_failed(uint64_t class_id, const Error& why) {
  auto found = class_by_id_.find(class_id);
  if (found == class_by_id_.end()) return;
  SchedulingClass& c = *found->second;
  fail_queue(c, why);
  update_demand(c);
}

void Submitter::fail_queue(SchedulingClass& c, const std::optional<Error>& why) {
  std::deque<Task*> queue = std::move(c.queue);
  c.queue.clear();
  for (Task* task : queue) {
    --pending_;
    sink_.fail_task(
        task, why ? system_error(why->code, why->message, *task) : group_removed_error(*task));
  }
}

void Submitter::close(const Error& why) {
  closed_ = why;
  for (auto& [key, c] : classes_) {
    c->local_want = 0;
    c->remotes.clear();
    if (c->group) c->group->clear();
    pump(*c);
  }
}

void Submitter::node_gone(const NodeKey& node) {
  for (auto& [key, c] : classes_) {
    bool had = c->group        ? c->group->forget(node)
               : node.is_nil() ? std::exchange(c->local_want, 0) > 0
                               : c->remotes.erase(node) > 0;
    if (!had || node.is_nil()) continue;
    // It may be that only an attempt to tell it failed, and that a later one has reached it.
    if (!c->group) send_demand(node, *c, 0, 0, "");
    update_demand(*c);
  }
}

Submitter::Cancelled Submitter::cancel(Task* task) {
  SchedulingClass& c = *class_of(*task);
  if (auto queued = std::find(c.queue.begin(), c.queue.end(), task); queued != c.queue.end()) {
    c.queue.erase(queued);
    fail_cancelled(task);
    pump(c);
    return {};
  }
  auto has = [task](const auto& tasks) {
    return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
  };
  for (Lease* lease : c.leases) {
    if (!has(lease->in_flight)) continue;
    task->cancelled = true;
    return {.lease = lease};
  }
  for (const auto& [key, tasks] : awaiting_exit_) {
    if (!has(tasks)) continue;
    task->cancelled = true;
    return {};
  }
  return {.submitted = false};
}

void Submitter::return_idle_leases() {
  std::vector<Lease*> idle;
  for (auto& [key, c] : classes_) {
    for (Lease* lease : c->leases) {
      if (lease->state != Lease::State::kBroken && lease->in_flight.empty() && c->queue.empty())
        idle.push_back(lease);
    }
  }
  for (Lease* lease : idle) drop_lease(*lease, false);
}

void Submitter::tick(Now now) {
  const int64_t now_us = now.steady_us;
  int64_t next = -1;
  auto sooner = [&](int64_t at) { next = next < 0 ? at : std::min(next, at); };
  std::vector<Lease*> idle;
  for (auto& [key, c] : classes_) {
    for (Lease* lease : c->leases) {
      if (lease->state == Lease::State::kReady && lease->in_flight.empty()) {
        int64_t until = lease->idle_since_us + idle_timeout_us(settings_);
        if (until <= now_us) {
          idle.push_back(lease);
        } else {
          sooner(until);
        }
      }
    }
    bool changed = false;
    for (auto it = c->remotes.begin(); it != c->remotes.end();) {
      if (it->second.until_us <= now_us) {
        send_demand(it->first, *c, 0, 0, "");
        it = c->remotes.erase(it);
        changed = true;
      } else {
        sooner(it->second.until_us);
        ++it;
      }
    }
    if (changed) update_demand(*c);
    for (Lease* lease : c->leases) {
      if (became_overdue(settings_, *lease, now) && lease->in_flight.size() > 1)
        sink_.take_back(*lease, static_cast<int>(lease->in_flight.size()) - 1);
      // The next round asks again if there is still reason to.
      lease->take_back_pending = false;
    }
    if (c->unstarted_in_flight > 0) {
      if (c->queue.empty()) rebalance(*c);
      sooner(now_us + settings_.pipeline_target_us);
    }
  }
  for (Lease* lease : idle) drop_lease(*lease, false);
  // One that becomes idle now is due then.
  if (!leases_.empty()) sooner(now_us + idle_timeout_us(settings_));
  next_tick_us_ = next >= 0 ? std::max(next, now_us + kTickPaceUs) : -1;
}

void Submitter::check_invariants() const {
  int64_t counted = 0;
  for (const auto& [key, c] : classes_) {
    counted += static_cast<int64_t>(c->queue.size());
    int64_t unstarted = 0;
    for (const Lease* lease : c->leases) {
      RT_CHECK(lease->owner_class == c.get());
      counted += static_cast<int64_t>(lease->in_flight.size());
      if (!lease->in_flight.empty()) unstarted += static_cast<int64_t>(lease->in_flight.size()) - 1;
      RT_CHECK(lease->state == Lease::State::kReady || lease->in_flight.empty());
      RT_CHECK((lease->state == Lease::State::kReady) == (lease->channel != nullptr));
    }
    RT_CHECK(unstarted == c->unstarted_in_flight);
    RT_CHECK(c->local_want >= 0);
    RT_CHECK(!c->group || (c->local_want == 0 && c->remotes.empty()));
    RT_CHECK(!c->remotes.contains(NodeKey::nil()));  // The local node has its own demand.
  }
  RT_CHECK(leases_.empty() || next_tick_us_ >= 0);
  for (const auto& [key, tasks] : awaiting_exit_) counted += static_cast<int64_t>(tasks.size());
  RT_CHECK(counted == pending_);
}

}  // namespace rt::worker
