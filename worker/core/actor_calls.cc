#include "worker/core/actor_calls.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "worker/core/death.h"

namespace rt::worker {

namespace {

// How many links to dead actors are kept with their causes, in addition to those of which this
// process holds handles. A call to a forgotten one asks the head again.
constexpr size_t kDeadKept = 100;
// How many of the oldest are examined per new link: more than are added, so that the number
// shrinks.
constexpr int kExaminedPerLink = 2;
// How many full windows a process reports; lists of what waits show the others.
constexpr int kMostWindowsReported = 10;
// How long the news of a death waits for the end of the connection before the head is asked again.
constexpr int64_t kUnreadRepliesUs = 500'000;
// How long after an answer that does not settle it, or after none, the head is asked again.
constexpr int64_t kAskAgainUs = 500'000;

int64_t pending_calls(const ActorLink& actor) {
  size_t count = actor.in_flight.size();
  for (const ActorLink::Lane& lane : actor.lanes) count += lane.queue.size();
  return static_cast<int64_t>(count);
}

// The call in flight with this sequence number, or the end. The numbers wrap around.
auto find_in_flight(ActorLink& actor, uint32_t seq) {
  auto& calls = actor.in_flight;
  auto found = std::partition_point(calls.begin(), calls.end(), [seq](const Task* task) {
    return static_cast<int32_t>(task->seq - seq) < 0;
  });
  return found != calls.end() && (*found)->seq == seq ? found : calls.end();
}

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

ActorCalls::ActorCalls(ActorSink& sink, const Settings& settings)
    : sink_(sink), settings_(settings) {}

ActorLink* ActorCalls::find(const ActorId& id) {
  auto it = actors_.find(id);
  return it == actors_.end() ? nullptr : it->second.get();
}

ActorLink& ActorCalls::link(const ActorId& id) {
  auto& slot = actors_[id];
  if (!slot) {
    slot = std::make_unique<ActorLink>();
    slot->id = id;
    slot->handle = handle_object_of(id);
    lane_of(*slot, "");
    forget_old_dead();
    if (closed_) {
      fail_all(*slot, *closed_);
    } else {
      sink_.subscribe_actor(id);
    }
  }
  return *slot;
}

void ActorCalls::forget_old_dead() {
  for (int i = 0; i < kExaminedPerLink && dead_.size() > kDeadKept; ++i) {
    ActorId oldest = dead_.front();
    dead_.pop_front();
    if (sink_.forget_actor(oldest)) {
      actors_.erase(oldest);
    } else {
      dead_.push_back(oldest);
    }
  }
}

Status ActorCalls::admit(const ActorLink& actor, int64_t max_pending_calls) {
  if (max_pending_calls >= 0 && pending_calls(actor) >= max_pending_calls) {
    return make_error(Code::kResourceExhausted,
                      fmt::format("The actor {} has {} pending calls, its max_pending_calls. Wait "
                                  "for some of them before calling again.",
                                  actor.id.hex(), max_pending_calls));
  }
  return {};
}

void ActorCalls::submit(ActorLink& actor, Task* task) {
  if (actor.state == ActorLink::State::kDead) {
    sink_.fail_task(task, unsent_error(actor, *task, actor.info.death()));
    return;
  }
  if (task->retries_left == 0) {
    if (actor.state == ActorLink::State::kRestarting) {
      sink_.fail_task(task, unavailable_error(actor, *task));
      return;
    }
    task->in_gap = actor.state == ActorLink::State::kInterrupted || actor.end_of_life;
  }
  const std::string& group = task->function->spec.concurrency_group();
  task->lane = group.empty() ? 0 : lane_of(actor, group);
  ActorLink::Lane& lane = actor.lanes[task->lane];
  lane.queue.push_back(task);
  pump(actor, lane);
}

uint16_t ActorCalls::lane_of(ActorLink& actor, const std::string& group) {
  auto found = std::find_if(actor.lanes.begin(), actor.lanes.end(),
                            [&](const ActorLink::Lane& lane) { return lane.group == group; });
  if (found == actor.lanes.end()) {
    found = actor.lanes.emplace(actor.lanes.end());
    found->group = group;
    found->window = window_of(actor, group);
  }
  return static_cast<uint16_t>(found - actor.lanes.begin());
}

int64_t ActorCalls::window_of(const ActorLink& actor, const std::string& group) const {
  const proto::ActorSpec& spec = actor.info.spec();
  int64_t at_once = 0;
  if (group.empty()) {
    at_once = spec.max_concurrency();
  } else if (auto limit = spec.concurrency_groups().find(group);
             limit != spec.concurrency_groups().end()) {
    at_once = limit->second;
  }
  return std::max(settings_.actor_max_in_flight, at_once);
}

void ActorCalls::args_ready(const ActorId& id) {
  if (ActorLink* actor = find(id)) pump(*actor);
}

void ActorCalls::pump(ActorLink& actor) {
  for (ActorLink::Lane& lane : actor.lanes) pump(actor, lane);
}

void ActorCalls::pump(ActorLink& actor, ActorLink::Lane& lane) {
  if (actor.state != ActorLink::State::kAlive || actor.end_of_life) return;
  auto send = [&](Task* task) {
    task->seq = actor.next_seq++;
    actor.in_flight.push_back(task);
    ++lane.in_flight;
    sink_.push_call(actor, *task);
  };
  if (!actor.out_of_order) {
    while (!lane.queue.empty() && lane.queue.front()->unready_args == 0 && !lane.full()) {
      Task* task = lane.queue.front();
      lane.queue.pop_front();
      send(task);
    }
  } else {
    for (auto it = lane.queue.begin(); it != lane.queue.end() && !lane.full();) {
      if ((*it)->unready_args == 0) {
        Task* task = *it;
        it = lane.queue.erase(it);
        send(task);
      } else {
        ++it;
      }
    }
  }
  if (!lane.holds_back()) return;
  const bool first = !std::exchange(held_back_told_, true);
  const bool tell =
      !std::exchange(lane.reported, true) && windows_reported_++ < kMostWindowsReported;
  if (first || tell) sink_.window_full(actor, lane, first, tell);
}

void ActorCalls::give_up(const ActorId& id, const std::string& why) {
  ActorLink* actor = find(id);
  if (!actor || actor->state == ActorLink::State::kDead) return;
  proto::ExitInfo death;
  death.set_message(why);
  fail_all(*actor, death);
}

void ActorCalls::ask_at(ActorLink& actor, int64_t at_us) {
  if (actor.ask_at_us >= 0) asks_.erase({actor.ask_at_us, actor.id});
  actor.ask_at_us = at_us;
  if (at_us >= 0) asks_.emplace(at_us, actor.id);
}

void ActorCalls::tick(Now now) {
  while (!asks_.empty() && asks_.begin()->first <= now.steady_us) {
    const ActorId id = asks_.begin()->second;
    ask_at(*find(id), -1);
    sink_.query_actor(id);
  }
}

void ActorCalls::query_answered(const ActorId& id, const proto::ActorInfo* info, Now now) {
  if (!info) return actor_unknown(id, now);
  actor_update(id, *info, now);
  ActorLink* actor = find(id);
  if (actor && actor->is_uncertain() && actor->ask_at_us < 0)
    ask_at(*actor, now.steady_us + kAskAgainUs);
}

void ActorCalls::query_failed(const ActorId& id, Now now) {
  if (ActorLink* actor = find(id); actor && actor->waits_for_head())
    ask_at(*actor, now.steady_us + kAskAgainUs);
}

void ActorCalls::subscriptions_renewed(Now now) {
  for (auto& [id, actor] : actors_) {
    if (actor->waits_for_head()) ask_at(*actor, now.steady_us);
  }
}

void ActorCalls::actor_unknown(const ActorId& id, Now now) {
  ActorLink* actor = find(id);
  if (!actor || actor->state == ActorLink::State::kDead) return;
  // An actor of which the head has told before is gone, together with its record.
  if (!actor->info.has_spec()) {
    const ActorSink::Maker maker = sink_.maker_of(id);
    if (maker == ActorSink::Maker::kThisProcess) return;
    if (actor->unknown_since_us < 0) actor->unknown_since_us = now.steady_us;
    // A process that does not reach the head for longer counts as dead, as its node does.
    if (maker == ActorSink::Maker::kAnother &&
        now.steady_us - actor->unknown_since_us < settings_.node_timeout_ms * 1000)
      return ask_at(*actor, now.steady_us + kAskAgainUs);
  }
  give_up(id,
          "the cluster does not know it (its records are gone, the process that was to create it "
          "ended before, or the handle comes from another cluster)");
}

void ActorCalls::actor_update(const ActorId& id, const proto::ActorInfo& info, Now now) {
  ActorLink* found = find(id);
  if (!found || found->state == ActorLink::State::kDead) return;
  ActorLink& actor = *found;
  // This news is outdated. A death is final, though, whatever its epoch: the head that says so may
  // have been started again, and have lost the later epochs of an actor that died meanwhile.
  if (info.state() != proto::ACTOR_DEAD && info.epoch() < actor.info.epoch()) return;
  bool same_life = info.epoch() == actor.info.epoch();
  // Every death starts a new epoch. "Restarting" in an epoch that was alive comes from a head that
  // itself restarted before that state was on its disk.
  if (same_life && actor.info.state() == proto::ACTOR_ALIVE &&
      info.state() == proto::ACTOR_RESTARTING)
    return;
  const bool life_ended = info.state() == proto::ACTOR_DEAD ||
                          info.state() == proto::ACTOR_RESTARTING ||
                          (info.state() == proto::ACTOR_ALIVE && !same_life);
  if (life_ended && actor.state == ActorLink::State::kAlive && !actor.in_flight.empty() &&
      !actor.end_of_life) {
    // The process may have answered before it ended. A connection that has no end, as when a
    // machine is lost, is not waited for: the head's next answer decides.
    actor.end_of_life = std::make_unique<proto::ActorInfo>(info);
    ask_at(actor, now.steady_us + kUnreadRepliesUs);
    return;
  }
  if (actor.end_of_life && !life_ended) {
    // An answer that the head gave before it heard of the death.
    ask_at(actor, now.steady_us + kUnreadRepliesUs);
    return;
  }
  apply_news(actor, info);
}

void ActorCalls::apply_news(ActorLink& actor, const proto::ActorInfo& info) {
  const bool same_life = info.epoch() == actor.info.epoch();
  actor.end_of_life.reset();
  actor.info = info;
  if (!actor.is_uncertain()) ask_at(actor, -1);
  for (ActorLink::Lane& lane : actor.lanes) lane.window = window_of(actor, lane.group);
  switch (info.state()) {
    case proto::ACTOR_DEAD: fail_all(actor, info.death()); break;
    case proto::ACTOR_DEPENDENCIES_UNREADY:
    case proto::ACTOR_PENDING: break;
    case proto::ACTOR_RESTARTING:
      settle_uncertain(actor);
      set_state(actor, ActorLink::State::kRestarting);
      break;
    case proto::ACTOR_ALIVE:
      if (same_life &&
          (actor.state == ActorLink::State::kAlive || actor.state == ActorLink::State::kConnecting))
        break;
      // In the same epoch either only the connection broke, or the head has not heard of the death
      // yet: uncertain calls wait for the next answer.
      if (!same_life) settle_uncertain(actor);
      set_state(actor, ActorLink::State::kConnecting);
      sink_.connect_actor(actor);
      break;
    default: break;
  }
}

void ActorCalls::set_state(ActorLink& actor, ActorLink::State state) {
  actor.state = state;
  if (state != ActorLink::State::kAlive) actor.channel = nullptr;
  if (!actor.is_uncertain()) ask_at(actor, -1);
}

void ActorCalls::connected(const ActorId& id, TaskChannel& channel) {
  ActorLink* actor = find(id);
  if (!actor || actor->state != ActorLink::State::kConnecting) return;
  set_state(*actor, ActorLink::State::kAlive);
  actor->channel = &channel;
  actor->connect_failures = 0;
  for (ActorLink::Lane& lane : actor->lanes) {
    for (Task* task : lane.queue) task->in_gap = false;
  }
  settle_uncertain(*actor);
  pump(*actor);
}

void ActorCalls::connection_lost(const ActorId& id, Now now) {
  ActorLink* actor = find(id);
  if (!actor ||
      (actor->state != ActorLink::State::kAlive && actor->state != ActorLink::State::kConnecting))
    return;
  set_state(*actor, ActorLink::State::kInterrupted);
  if (auto news = std::move(actor->end_of_life)) {
    apply_news(*actor, *news);
    return;
  }
  // The head hears of a death from the node-manager at about the same time. If the head still says
  // alive, the link connects again.
  ask_at(*actor, now.steady_us + std::min<int64_t>(1'000'000, 50'000ll << std::min(
                                                                  actor->connect_failures++, 5)));
}

void ActorCalls::settle_uncertain(ActorLink& actor) {
  std::deque<Task*> uncertain = std::move(actor.in_flight);
  actor.in_flight.clear();
  for (ActorLink::Lane& lane : actor.lanes) lane.in_flight = 0;
  std::vector<Task*> again;
  for (Task* task : uncertain) {
    if (task->cancelled) {
      sink_.fail_task(task, cancelled_error(*task));
    } else if (task->retries_left == 0) {
      sink_.fail_task(task, unavailable_error(actor, *task));
    } else {
      sink_.attempt_failed(*task, unavailable_error(actor, *task));
      if (task->retries_left > 0) --task->retries_left;
      task->count_attempt();
      again.push_back(task);
    }
  }
  // Calls made in the gap were meant for the life that has ended.
  std::vector<Task*> gap;
  for (ActorLink::Lane& lane : actor.lanes) {
    std::erase_if(lane.queue,
                  [&](Task* task) { return task->in_gap && (gap.push_back(task), true); });
  }
  for (Task* task : gap) sink_.fail_task(task, unavailable_error(actor, *task));
  for (auto task = again.rbegin(); task != again.rend(); ++task)
    actor.lanes[(*task)->lane].queue.push_front(*task);
}

void ActorCalls::fail_all(ActorLink& actor, const proto::ExitInfo& death) {
  actor.end_of_life.reset();
  set_state(actor, ActorLink::State::kDead);
  dead_.push_back(actor.id);
  *actor.info.mutable_death() = death;
  std::deque<Task*> sent = std::move(actor.in_flight);
  std::vector<ActorLink::Lane> lanes = std::move(actor.lanes);
  actor.in_flight.clear();
  actor.lanes.clear();
  lane_of(actor, "");
  for (Task* task : sent)
    sink_.fail_task(task, actor_death_error(task, actor.id, &actor.info, death));
  for (const ActorLink::Lane& lane : lanes) {
    for (Task* task : lane.queue) sink_.fail_task(task, unsent_error(actor, *task, death));
  }
}

void ActorCalls::close(const proto::ExitInfo& why) {
  closed_ = why;
  for (auto& [id, actor] : actors_) {
    if (actor->state != ActorLink::State::kDead) fail_all(*actor, why);
  }
}

Task* ActorCalls::reply_of(ActorLink& actor, uint32_t seq) {
  if (!actor.in_flight.empty() && actor.in_flight.front()->seq == seq)
    return actor.in_flight.front();
  auto found = find_in_flight(actor, seq);
  return found == actor.in_flight.end() ? nullptr : *found;
}

void ActorCalls::remove_in_flight(ActorLink& actor, Task* task) {
  if (actor.in_flight.front() == task) {
    actor.in_flight.pop_front();
  } else {
    actor.in_flight.erase(find_in_flight(actor, task->seq));
  }
  --actor.lanes[task->lane].in_flight;
}

void ActorCalls::finished(ActorLink& actor, Task* task) {
  remove_in_flight(actor, task);
  ActorLink::Lane& lane = actor.lanes[task->lane];
  if (!lane.queue.empty()) pump(actor, lane);
}

void ActorCalls::retry(ActorLink& actor, Task* task) {
  remove_in_flight(actor, task);
  task->count_attempt();
  if (task->retries_left > 0) --task->retries_left;
  ActorLink::Lane& lane = actor.lanes[task->lane];
  lane.queue.push_front(task);
  pump(actor, lane);
}

bool ActorCalls::cancel(ActorLink& actor, Task* task) {
  ActorLink::Lane& lane = actor.lanes[task->lane];
  if (auto queued = std::find(lane.queue.begin(), lane.queue.end(), task);
      queued != lane.queue.end()) {
    lane.queue.erase(queued);
    sink_.fail_task(task, cancelled_error(*task));
    // Calls behind it may have waited for its arguments.
    pump(actor, lane);
    return false;
  }
  if (std::find(actor.in_flight.begin(), actor.in_flight.end(), task) == actor.in_flight.end())
    return false;
  task->cancelled = true;
  return actor.state == ActorLink::State::kAlive;
}

int64_t ActorCalls::count_held_back() {
  int64_t count = 0;
  for (const auto& [id, actor] : actors_) {
    if (actor->state != ActorLink::State::kAlive) continue;
    for (const ActorLink::Lane& lane : actor->lanes) {
      if (lane.holds_back()) count += static_cast<int64_t>(lane.queue.size());
    }
  }
  held_back_told_ = count > 0;
  return count;
}

int64_t ActorCalls::pending() const {
  int64_t count = 0;
  for (const auto& [id, actor] : actors_) count += pending_calls(*actor);
  return count;
}

void ActorCalls::check_invariants() const {
  size_t dead = 0, asked = 0;
  for (const auto& [id, actor] : actors_) {
    RT_CHECK(actor->id == id);
    if (actor->state == ActorLink::State::kDead) RT_CHECK(pending_calls(*actor) == 0);
    RT_CHECK(!actor->lanes.empty() && actor->lanes.front().group.empty());
    std::vector<int64_t> in_flight(actor->lanes.size());
    for (const Task* task : actor->in_flight) ++in_flight.at(task->lane);
    for (size_t i = 0; i < actor->lanes.size(); ++i) {
      const ActorLink::Lane& lane = actor->lanes[i];
      RT_CHECK(lane.in_flight == in_flight[i] && lane.window >= settings_.actor_max_in_flight);
      for (const Task* task : lane.queue) RT_CHECK(task->lane == i);
    }
    RT_CHECK(!actor->end_of_life || actor->state == ActorLink::State::kAlive);
    RT_CHECK((actor->state == ActorLink::State::kAlive) == (actor->channel != nullptr));
    RT_CHECK(actor->ask_at_us < 0 ||
             (actor->waits_for_head() && asks_.contains({actor->ask_at_us, id})));
    asked += actor->ask_at_us >= 0;
    dead += actor->state == ActorLink::State::kDead;
    for (const Task* task : actor->in_flight) RT_CHECK(task->unready_args == 0);
  }
  RT_CHECK(dead == dead_.size());
  RT_CHECK(asked == asks_.size());
}

}  // namespace rt::worker
