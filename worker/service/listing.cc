#include "worker/service/listing.h"

#include <fmt/core.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "common/base/readable.h"
#include "observability/events/task_texts.h"
#include "worker/core/death.h"
#include "worker/core/generator_stream.h"
#include "worker/service/actor_client.h"
#include "worker/service/executing_task.h"
#include "worker/service/execution.h"
#include "worker/service/groups.h"
#include "worker/service/lease_client.h"
#include "worker/service/objects.h"
#include "worker/service/shared.h"
#include "worker/service/submission.h"

namespace rt::worker {
namespace {

// The most records that one process lists, as in Ray. The totals count the rest as well.
constexpr int64_t kMaxListed = 10'000;

using State = proto::TaskRecord;

// Where a submitted task was sent.
struct TaskPlace {
  std::string node_id, worker_id;
  int pid = 0;
};
struct PendingTask {
  std::optional<TaskPlace> place;  // Empty for a task that waits in this process.
  // Set for a call that waits for earlier ones to the same actor, which is alive.
  const ActorLink* waits_for_turn = nullptr;
};
using PendingTasks = std::unordered_map<const Task*, PendingTask>;

void fill_template(const proto::TaskTemplate& spec, proto::TaskRecord* record) {
  describe(spec, record);
  record->set_function(display_name(spec.function()));
}

State::State state_of(const Task& task, const PendingTasks& pending) {
  auto it = pending.find(&task);
  if (it != pending.end() && it->second.place) return State::SUBMITTED_TO_WORKER;
  if (task.unready_args > 0) return State::PENDING_ARGS_AVAIL;
  return it != pending.end() && it->second.waits_for_turn ? State::PENDING_TURN
                                                          : State::PENDING_NODE_ASSIGNMENT;
}

// A constructor comes over no connection.
State::Kind kind_of(const IncomingTask& task, bool in_actor) {
  if (!task.link) return State::ACTOR_CREATION;
  return in_actor ? State::ACTOR_METHOD : State::TASK;
}

// The tasks that were submitted in this process and have not ended.
PendingTasks pending_tasks(const Listing::Parts& parts) REQUIRES(worker_mutex) {
  PendingTasks pending;
  parts.leases.submitter().for_each_task([&](const Task& task, const Lease* lease) {
    auto& sent = pending[&task];
    if (lease)
      sent.place = TaskPlace{lease->worker.node_id(), lease->worker.worker_id(), lease->pid};
  });
  parts.actors.calls().for_each_call([&](const Task& task, const ActorLink& actor, bool in_flight) {
    auto& sent = pending[&task];
    // An actor that runs takes everything that order and windows allow.
    if (!in_flight && actor.state == ActorLink::State::kAlive) sent.waits_for_turn = &actor;
    if (in_flight)
      sent.place = TaskPlace{actor.info.address().node_id(), actor.info.address().worker_id(),
                             actor.info.pid()};
  });
  // Tasks whose arguments are not ready can be found only through the entries of their results.
  parts.objects.refs().for_each([&](ObjectEntry& entry) {
    if (Task* task = Submission::producer_of(&entry)) pending.try_emplace(task);
  });
  return pending;
}

std::string turn_text(const ActorLink& actor, const ActorLink::Lane& lane, int64_t max_in_flight) {
  if (!actor.channel) return "the connection to its actor";
  if (!lane.full())
    return "earlier calls of this process to the same actor, whose arguments are not ready";
  return fmt::format(
      "earlier calls of this process to the same actor{}: {} are unanswered, and further ones wait "
      "at their caller ({}, now {})",
      lane.group.empty() ? "" : " and concurrency group", lane.in_flight,
      lane.window > max_in_flight ? "as many as the actor runs at a time" : "actor_max_in_flight",
      lane.window);
}

// Tells what a ready task that was not sent to a process waits for; empty when its state says it.
std::string waits_for(const Listing::Parts& parts, const Task& task, const ActorLink* turn)
    REQUIRES(worker_mutex) {
  if (turn)
    return turn_text(*turn, turn->lanes[task.lane], parts.shared.settings().actor_max_in_flight);
  const proto::TaskTemplate& spec = task.function->spec;
  if (!task.function->scheduling_class || !GroupId::is_valid(spec.group_id())) return "";
  return parts.groups.view().waits_for(GroupId::from_binary(spec.group_id()), spec.bundle_index());
}

std::string consumer_text(const ExecutingTaskImpl& task, int64_t shared_limit)
    REQUIRES(worker_mutex) {
  const int64_t limit = task.spec().generator_backpressure();
  return fmt::format(
      "its consumer, which has not taken {} of its items: the most that the generator may be "
      "ahead{} is {} (_generator_backpressure_num_objects)",
      task.items_ahead(), limit == kSharedLimit ? ", with the actor's other generators," : "",
      limit == kSharedLimit ? shared_limit : limit);
}

// How far a task is that has come here and has not started.
State::State state_in_line(const IncomingTask& task, bool is_call,
                           const store::StoreClient* store) {
  if (task.is_fetching())
    return store && store->waits_for_room(task.fetch_ticket) ? State::PENDING_OBJ_STORE_MEM_AVAIL
                                                             : State::PENDING_ARGS_FETCH;
  return is_call ? State::PENDING_TURN : State::SUBMITTED_TO_WORKER;
}

// The bytes for which tasks wait with their results, by task.
std::unordered_map<TaskId, int64_t> results_without_room(const store::StoreClient* store) {
  std::unordered_map<TaskId, int64_t> wanted;
  if (!store) return wanted;
  for (const auto& [id, size] : store->asked_room()) {
    if (index_of(id) < kPutIndexBase) wanted[task_of(id)] += size;
  }
  return wanted;
}

}  // namespace

void Listing::objects(proto::ObjectRecords* out) const {
  parts_.objects.refs().drain_releases();
  out->set_pid(getpid());
  out->set_ip(parts_.shared.context.node_ip);
  out->set_is_driver(parts_.shared.options.is_driver);
  std::unordered_map<const RefEntry*, int> uses;
  std::unordered_set<const RefEntry*> contained;
  PendingTasks pending = pending_tasks(parts_);
  for (const auto& [task, sent] : pending) {
    for (const Task::Arg& arg : task->args) {
      if (arg.ref) ++uses[arg.ref.entry()];
    }
    for (const Ref& held : task->held) ++uses[held.entry()];
  }
  parts_.objects.refs().for_each([&](ObjectEntry& entry) {
    for (const Ref& inner : entry.details().contained) contained.insert(inner.entry());
  });
  int64_t total = 0;
  parts_.objects.refs().for_each([&](ObjectEntry& entry) {
    if (entry.kind == ObjectEntry::Kind::kStream || ++total > kMaxListed) return;
    const bool is_actor = entry.kind == ObjectEntry::Kind::kActorHandle;
    proto::ObjectRecord* record = out->add_objects();
    record->set_object_id(entry.id.binary());
    record->set_size(entry.ready && !is_actor ? entry.size : -1);
    record->set_owned(entry.owned);
    record->set_local_refs(entry.local_refs & (RefEntry::kQueued - 1));
    if (auto it = uses.find(&entry); it != uses.end()) record->set_pending_uses(it->second);
    record->set_borrowers(static_cast<int>(entry.details().borrowers.size()));
    record->set_contained(contained.contains(&entry));
    record->set_in_store(entry.in_store());
    record->set_ready(entry.ready);
    record->set_is_actor(is_actor);
    if (Task* task = Submission::producer_of(&entry)) {
      record->set_attempt(task->attempt);
      record->set_task_state(state_of(*task, pending));
      record->set_call_site(task->function->spec.call_site());
    }
    for (const ObjectLocation& location : entry.details().locations)
      record->add_locations(location.node.binary());
  });
  out->set_total(total);
}

void Listing::tasks(proto::TaskRecords* out) const {
  parts_.objects.refs().drain_releases();
  PendingTasks pending = pending_tasks(parts_);
  int64_t total = 0;
  auto add = [&]() -> proto::TaskRecord* {
    return ++total > kMaxListed ? nullptr : out->add_tasks();
  };
  for (const auto& [task, sent] : pending) {
    if (task->function->spec.unrecorded()) continue;
    proto::TaskRecord* record = add();
    if (!record) continue;
    record->set_task_id(task->id.binary());
    record->set_attempt(task->attempt);
    fill_template(task->function->spec, record);
    record->set_kind(task->function->scheduling_class ? State::TASK : State::ACTOR_METHOD);
    if (TaskId parent = parts_.submission.parent_of(*task); !parent.is_nil())
      record->set_parent_task_id(parent.binary());
    record->set_created_us(task->created_us);
    record->set_state(state_of(*task, pending));
    if (!sent.place && task->unready_args == 0)
      record->set_waits_for(waits_for(parts_, *task, sent.waits_for_turn));
    if (!sent.place) continue;
    record->set_node_id(sent.place->node_id);
    record->set_worker_id(sent.place->worker_id);
    record->set_pid(sent.place->pid);
  }
  const proto::ActorSpec* actor = parts_.execution.actor_spec();
  auto here = [&](const IncomingTask& task, State::State state) -> proto::TaskRecord* {
    proto::TaskRecord* record = task.function->spec.unrecorded() ? nullptr : add();
    if (!record) return nullptr;
    record->set_task_id(task.id.binary());
    record->set_attempt(task.attempt);
    fill_template(task.function->spec, record);
    if (!task.parent.is_nil()) record->set_parent_task_id(task.parent.binary());
    record->set_created_us(task.created_us);
    record->set_kind(kind_of(task, actor != nullptr));
    record->set_state(state);
    record->set_node_id(parts_.shared.context.node_id.binary());
    record->set_worker_id(parts_.shared.context.worker_id.binary());
    record->set_pid(getpid());
    return record;
  };
  parts_.execution.queue().for_each([&](const IncomingTask& task) {
    assert_locked();
    here(task, state_in_line(task, actor != nullptr, parts_.objects.store()));
  });
  const auto without_room = results_without_room(parts_.objects.store());
  for (ExecutingTaskImpl* task = parts_.execution.running(); task; task = task->next()) {
    proto::TaskRecord* record = here(
        task->incoming(), task->progress().has_started() ? State::RUNNING : State::PENDING_TURN);
    if (!record || !task->progress().has_started()) continue;
    record->set_start_time_us(task->times().start_us);
    if (task->incoming().waits_for_consumer)
      record->set_waits_for(
          consumer_text(*task, actor ? actor->creation().generator_backpressure() : 0));
    if (auto result = without_room.find(task->id()); result != without_room.end()) {
      record->set_state(State::PENDING_OBJ_STORE_MEM_AVAIL);
      record->set_waits_for(fmt::format(
          "room for {} of its result in the object store of its node; it fails when there is none "
          "within {} ms (create_wait_ms)",
          binary_bytes(static_cast<double>(result->second)),
          parts_.shared.options.settings.create_wait_ms));
    }
  }
  out->set_total(total);
}

}  // namespace rt::worker
