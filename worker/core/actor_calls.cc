#include "worker/core/actor_calls.h"

#include <fmt/core.h>

#include <algorithm>

#include "worker/core/death.h"

namespace rt::worker {

namespace {

// How many links to dead actors are kept with their causes, in addition to those of which this
// process holds handles. A call to a forgotten one asks the head again.
constexpr size_t kDeadKept = 100;
// How many of the oldest are examined per new link: more than are added, so that the number
// shrinks.
constexpr int kExaminedPerLink = 2;
// How long the news of a death waits for the end of the connection before the head is asked again.
constexpr int64_t kUnreadRepliesUs = 500'000;

proto::ErrorValue unavailable_error(const ActorLink& actor, const Task& task) {
  auto error = system_error(
      Code::kActorUnavailable,
      fmt::format("The actor {} is unavailable: the connection to its process broke while it was "
                  "restarting or dying. The task may or "
                  "may not have been executed on the actor; allow retries with max_task_retries.",
                  actor.id.hex()),
      task);
  error.set_actor_id(actor.id.binary());
  return error;
}

// The error of a call that was never sent to a process.
proto::ErrorValue unsent_error(const ActorLink& actor, const Task& task,
                               const proto::ExitInfo& death) {
  auto error = actor_death_error(&task, actor.id, &actor.info, death);
  error.mutable_exit()->clear_worker_id();
  return error;
}

}  // namespace

ActorCalls::ActorCalls(ActorComm& comm, const Settings& settings)
    : comm_(comm), settings_(settings) {}

ActorCalls::~ActorCalls() {
  for (auto& [id, actor] : actors_) {
    for (Task* task : actor->queue) delete task;
    for (Task* task : actor->in_flight) delete task;
  }
}

ActorLink* ActorCalls::find(const ActorId& id) {
  auto it = actors_.find(id);
  return it == actors_.end() ? nullptr : it->second.get();
}

ActorLink& ActorCalls::link(const ActorId& id) {
  auto& slot = actors_[id];
  if (!slot) {
    slot = std::make_unique<ActorLink>();
    slot->id = id;
    forget_old_dead();
    if (closed_) {
      fail_all(*slot, *closed_);
    } else {
      comm_.subscribe_actor(id);
    }
  }
  return *slot;
}

void ActorCalls::forget_old_dead() {
  for (int i = 0; i < kExaminedPerLink && dead_.size() > kDeadKept; ++i) {
    ActorId oldest = dead_.front();
    dead_.pop_front();
    if (comm_.forget_actor(oldest)) {
      actors_.erase(oldest);
    } else {
      dead_.push_back(oldest);
    }
  }
}

Status ActorCalls::admit(const ActorId& id, int64_t max_pending_calls) {
  ActorLink& actor = link(id);
  if (max_pending_calls >= 0 &&
      static_cast<int64_t>(actor.queue.size() + actor.in_flight.size()) >= max_pending_calls) {
    return make_error(Code::kResourceExhausted,
                      fmt::format("The actor {} has {} pending calls, its max_pending_calls. Wait "
                                  "for some of them before calling again.",
                                  id.hex(), max_pending_calls));
  }
  return {};
}

void ActorCalls::submit(const ActorId& id, Task* task) {
  ActorLink& actor = link(id);
  if (actor.state == ActorLink::State::kDead) {
    comm_.fail_task(task, unsent_error(actor, *task, actor.info.death()));
    return;
  }
  if (task->retries_left == 0) {
    if (actor.state == ActorLink::State::kRestarting) {
      comm_.fail_task(task, unavailable_error(actor, *task));
      return;
    }
    task->in_gap = actor.state == ActorLink::State::kInterrupted || actor.end_of_life;
  }
  actor.queue.push_back(task);
  pump(actor);
}

void ActorCalls::args_ready(const ActorId& id) {
  if (ActorLink* actor = find(id)) pump(*actor);
}

void ActorCalls::pump(ActorLink& actor) {
  if (actor.state != ActorLink::State::kAlive || actor.end_of_life) return;
  auto room = [&] {
    return static_cast<int64_t>(actor.in_flight.size()) < settings_.actor_max_in_flight;
  };
  auto send = [&](Task* task) {
    task->seq = actor.next_seq++;
    actor.in_flight.push_back(task);
    comm_.push_call(actor, *task);
  };
  if (!actor.out_of_order) {
    while (!actor.queue.empty() && actor.queue.front()->unready_args == 0 && room()) {
      Task* task = actor.queue.front();
      actor.queue.pop_front();
      send(task);
    }
    return;
  }
  for (auto it = actor.queue.begin(); it != actor.queue.end() && room();) {
    if ((*it)->unready_args == 0) {
      Task* task = *it;
      it = actor.queue.erase(it);
      send(task);
    } else {
      ++it;
    }
  }
}

void ActorCalls::actor_update(const ActorId& id, const proto::ActorInfo* info) {
  ActorLink* found = find(id);
  if (!found || found->state == ActorLink::State::kDead) return;
  ActorLink& actor = *found;
  if (!info) {
    proto::ExitInfo death;
    death.set_message(
        "the cluster does not know it (its records are gone, or the handle comes from another "
        "cluster)");
    fail_all(actor, death);
    return;
  }
  // This news is outdated.
  if (info->epoch() < actor.info.epoch()) return;
  bool same_life = info->epoch() == actor.info.epoch();
  // Every death starts a new epoch. "Restarting" in an epoch that was alive comes from a head that
  // itself restarted before that state was on its disk.
  if (same_life && actor.info.state() == proto::ACTOR_ALIVE &&
      info->state() == proto::ACTOR_RESTARTING)
    return;
  const bool life_ended = info->state() == proto::ACTOR_DEAD ||
                          info->state() == proto::ACTOR_RESTARTING ||
                          (info->state() == proto::ACTOR_ALIVE && !same_life);
  if (life_ended && actor.state == ActorLink::State::kAlive && !actor.in_flight.empty() &&
      !actor.end_of_life) {
    // The process may have answered before it ended. A connection that has no end, as when a
    // machine is lost, is not waited for: the head's next answer decides.
    actor.end_of_life = std::make_unique<proto::ActorInfo>(*info);
    comm_.ask_again(id, kUnreadRepliesUs);
    return;
  }
  if (actor.end_of_life && !life_ended) {
    // An answer that the head gave before it heard of the death.
    comm_.ask_again(id, kUnreadRepliesUs);
    return;
  }
  apply_news(actor, *info);
}

void ActorCalls::apply_news(ActorLink& actor, const proto::ActorInfo& info) {
  const bool same_life = info.epoch() == actor.info.epoch();
  actor.end_of_life.reset();
  actor.info = info;
  switch (info.state()) {
    case proto::ACTOR_DEAD: fail_all(actor, info.death()); break;
    case proto::ACTOR_DEPENDENCIES_UNREADY:
    case proto::ACTOR_PENDING: break;
    case proto::ACTOR_RESTARTING:
      settle_uncertain(actor);
      actor.state = ActorLink::State::kRestarting;
      break;
    case proto::ACTOR_ALIVE:
      if (same_life &&
          (actor.state == ActorLink::State::kAlive || actor.state == ActorLink::State::kConnecting))
        break;
      // In the same epoch either only the connection broke, or the head has not heard of the death
      // yet: uncertain calls wait for the next answer.
      if (!same_life) settle_uncertain(actor);
      actor.state = ActorLink::State::kConnecting;
      comm_.connect_actor(actor);
      break;
    default: break;
  }
}

void ActorCalls::connected(const ActorId& id) {
  ActorLink* actor = find(id);
  if (!actor || actor->state != ActorLink::State::kConnecting) return;
  actor->state = ActorLink::State::kAlive;
  actor->connect_failures = 0;
  for (Task* task : actor->queue) task->in_gap = false;
  settle_uncertain(*actor);
  pump(*actor);
}

void ActorCalls::connection_lost(const ActorId& id) {
  ActorLink* actor = find(id);
  if (!actor ||
      (actor->state != ActorLink::State::kAlive && actor->state != ActorLink::State::kConnecting))
    return;
  actor->state = ActorLink::State::kInterrupted;
  actor->connection = nullptr;
  if (auto news = std::move(actor->end_of_life)) {
    apply_news(*actor, *news);
    return;
  }
  // The head hears of a death from the node-manager at about the same time. If the head still says
  // alive, the link connects again.
  comm_.ask_again(id,
                  std::min<int64_t>(1'000'000, 50'000ll << std::min(actor->connect_failures++, 5)));
}

void ActorCalls::settle_uncertain(ActorLink& actor) {
  std::deque<Task*> uncertain = std::move(actor.in_flight);
  actor.in_flight.clear();
  std::vector<Task*> again;
  for (Task* task : uncertain) {
    if (task->cancelled) {
      comm_.fail_task(task, cancelled_error(*task));
    } else if (task->retries_left == 0) {
      comm_.fail_task(task, unavailable_error(actor, *task));
    } else {
      comm_.attempt_failed(*task, unavailable_error(actor, *task));
      if (task->retries_left > 0) --task->retries_left;
      ++task->attempt;
      again.push_back(task);
    }
  }
  // Calls made in the gap were meant for the life that has ended.
  std::vector<Task*> gap;
  std::erase_if(actor.queue,
                [&](Task* task) { return task->in_gap && (gap.push_back(task), true); });
  for (Task* task : gap) comm_.fail_task(task, unavailable_error(actor, *task));
  actor.queue.insert(actor.queue.begin(), again.begin(), again.end());
}

void ActorCalls::fail_all(ActorLink& actor, const proto::ExitInfo& death) {
  actor.state = ActorLink::State::kDead;
  actor.end_of_life.reset();
  dead_.push_back(actor.id);
  *actor.info.mutable_death() = death;
  std::deque<Task*> sent = std::move(actor.in_flight), queued = std::move(actor.queue);
  actor.in_flight.clear();
  actor.queue.clear();
  for (Task* task : sent)
    comm_.fail_task(task, actor_death_error(task, actor.id, &actor.info, death));
  for (Task* task : queued) comm_.fail_task(task, unsent_error(actor, *task, death));
}

void ActorCalls::close(const proto::ExitInfo& why) {
  closed_ = why;
  for (auto& [id, actor] : actors_) {
    if (actor->state != ActorLink::State::kDead) fail_all(*actor, why);
  }
}

Task* ActorCalls::reply_of(ActorLink& actor, uint32_t seq) {
  for (Task* task : actor.in_flight) {
    if (task->seq == seq) return task;
  }
  return nullptr;
}

void ActorCalls::finished(ActorLink& actor, Task* task) {
  if (actor.in_flight.front() == task) {
    actor.in_flight.pop_front();
  } else {
    std::erase(actor.in_flight, task);
  }
  if (!actor.queue.empty()) pump(actor);
}

void ActorCalls::retry(ActorLink& actor, Task* task) {
  std::erase(actor.in_flight, task);
  ++task->attempt;
  if (task->retries_left > 0) --task->retries_left;
  actor.queue.push_front(task);
  pump(actor);
}

bool ActorCalls::cancel(ActorLink& actor, Task* task) {
  if (auto queued = std::find(actor.queue.begin(), actor.queue.end(), task);
      queued != actor.queue.end()) {
    actor.queue.erase(queued);
    comm_.fail_task(task, cancelled_error(*task));
    // Calls behind it may have waited for its arguments.
    pump(actor);
    return false;
  }
  if (std::find(actor.in_flight.begin(), actor.in_flight.end(), task) == actor.in_flight.end())
    return false;
  task->cancelled = true;
  return actor.state == ActorLink::State::kAlive;
}

int64_t ActorCalls::pending() const {
  int64_t count = 0;
  for (const auto& [id, actor] : actors_)
    count += static_cast<int64_t>(actor->queue.size() + actor->in_flight.size());
  return count;
}

void ActorCalls::check_invariants() const {
  size_t dead = 0;
  for (const auto& [id, actor] : actors_) {
    RT_CHECK(actor->id == id);
    if (actor->state == ActorLink::State::kDead)
      RT_CHECK(actor->queue.empty() && actor->in_flight.empty());
    RT_CHECK(!actor->end_of_life || actor->state == ActorLink::State::kAlive);
    dead += actor->state == ActorLink::State::kDead;
    for (const Task* task : actor->in_flight) RT_CHECK(task->unready_args == 0);
  }
  RT_CHECK(dead == dead_.size());
}

}  // namespace rt::worker
