#include "worker/service/results.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/clock.h"
#include "worker/core/death.h"
#include "worker/core/value_codec.h"
#include "worker/service/actor_client.h"
#include "worker/service/lease_client.h"
#include "worker/service/notices.h"
#include "worker/service/objects.h"
#include "worker/service/recorder.h"
#include "worker/service/streams.h"
#include "worker/service/submission.h"

namespace rt::worker {

void Results::on_replies(const std::shared_ptr<Link>& link, Bytes body) {
  wire::Reader reader(body);
  const SteadyNow now = steady_now();
  while (!reader.at_end() && link->open) {
    auto seq = reader.number<uint32_t>();
    auto flags = reader.number<uint8_t>();
    auto status = static_cast<wire::TaskStatus>(flags & ~wire::kLeaving);
    auto duration = reader.number<uint32_t>();
    auto count = reader.count(wire::kMinValueBytes);
    Return inline_returns[4];
    std::vector<Return> many;
    Return* returns = inline_returns;
    if (count > 4) {
      many.resize(count);
      returns = many.data();
    }
    for (uint32_t i = 0; i < count && reader.ok(); ++i) returns[i] = read_return(reader);
    ActorLink* actor = link->actor.is_nil() ? nullptr : actors_.calls().find(link->actor);
    Task* task = !reader.ok() ? nullptr
                 : actor      ? actors_.calls().reply_of(*actor, seq)
                              : leases_.submitter().reply_of(link->lease_key, seq);
    if (!task) {
      link->connection->close(make_error(
          Code::kProtocol, fmt::format("a reply to task {} that is not in flight", seq)));
      return;
    }
    if (flags & wire::kLeaving && !actor) leases_.submitter().worker_leaves(link->lease_key);
    if (status == wire::TaskStatus::kNotStarted) {
      // An actor returns a call unstarted if the call was cancelled, or if the actor leaves.
      if (actor) {
        auto refusal = error_of(count > 0 ? returns[0].value : Bytes());
        actors_.calls().finished(*actor, task);
        fail(task, refusal ? actor_death_error(task, link->actor, &actor->info, refusal->exit())
                           : cancelled_error(*task));
      } else {
        leases_.submitter().task_returned(link->lease_key, task, now);
      }
      continue;
    }
    if (status == wire::TaskStatus::kErrorRetry && task->retries_left != 0 && !task->cancelled) {
      if (auto error = error_of(count > 0 ? returns[0].value : Bytes()))
        notices_.attempt_failed([&] { return retry_text(*task, *error); });
      actor ? actors_.calls().retry(*actor, task)
            : leases_.submitter().retry(link->lease_key, task, Submitter::Cost::kRetry, now);
      continue;
    }
    if (status == wire::TaskStatus::kNoRoom && !actor && submission_.move_to_arguments(*link, task))
      continue;
    ObjectLocation node;
    if (std::any_of(returns, returns + count, [](const Return& r) { return r.in_store; }))
      node = location_of(*link);
    // The lease comes first: its next task may be sent while the results of this one are stored.
    // The lease may be gone afterwards.
    actor ? actors_.calls().finished(*actor, task)
          : leases_.submitter().finished(link->lease_key, task, duration, now);
    complete(task, node, {returns, count}, status);
  }
  if (!reader.ok()) link->connection->close(make_error(Code::kProtocol, "malformed reply"));
}

Return read_return(wire::Reader& reader) {
  Return out;
  out.in_store = reader.number<wire::ValuePlace>() == wire::ValuePlace::kInStore;
  if (out.in_store) out.size = reader.number<int64_t>();
  out.value = reader.take(reader.number<uint32_t>());
  return out;
}

Task* Results::task_in_flight(const Link& link, uint32_t seq) {
  if (link.actor.is_nil()) return leases_.submitter().reply_of(link.lease_key, seq);
  ActorLink* actor = actors_.calls().find(link.actor);
  return actor ? actors_.calls().reply_of(*actor, seq) : nullptr;
}

ObjectLocation Results::location_of(const Link& link) {
  ActorLink* actor = link.actor.is_nil() ? nullptr : actors_.calls().find(link.actor);
  const proto::WorkerAddress& worker =
      actor ? actor->info.address() : leases_.submitter().find_lease(link.lease_key)->worker;
  return {NodeId::from_binary(worker.node_id()), worker.ip(), worker.port()};
}

void Results::store_return(ObjectEntry& entry, const Return& value, const ObjectLocation& node,
                           bool cancelled) {
  if (!value.in_store) {
    auto decoded = decode_value(value.value);
    if (decoded && !decoded->packed_refs.empty())
      entry.mutable_details().contained = objects_.take_refs(decoded->packed_refs, true, false);
    if (decoded && decoded->kind == ValueKind::kError) {
      objects_.count_error();
      entry.unseen_error = objects_.reports_unseen() && !cancelled;
    }
    objects_.set_blob(entry, copy_blob(value.value));
    return;
  }
  if (!value.value.empty())
    entry.mutable_details().contained = objects_.take_refs(value.value, true, false);
  entry.state = ObjectState::kInStore;
  entry.size = value.size;
  entry.mutable_details().locations.push_back(node);
  objects_.mark_ready(entry);
}

void Results::complete(Task* task, const ObjectLocation& node, std::span<const Return> returns,
                       wire::TaskStatus status) {
  if (task->function->spec.num_returns() < 0) {
    streams_.complete(task, returns, status != wire::TaskStatus::kOk);
    return drop(task);
  }
  for (size_t i = 0; i < task->returns.size(); ++i) {
    auto& entry = entry_of(task->returns[i]);
    // An error stands for all returns.
    const Return* r = i < returns.size() ? &returns[i]
                      : returns.empty()  ? nullptr
                                         : &returns.back();
    if (!r) {
      objects_.set_error(entry,
                         system_error(Code::kInternal, "the worker's reply holds no value", *task));
      continue;
    }
    store_return(entry, *r, node, task->cancelled);
  }
  drop(task);
}

void Results::attempt_failed(const Task& task, const proto::ErrorValue& error) {
  recorder_.task_failed(task, submission_.parent_of(task), &error, &error.exit());
  notices_.attempt_failed([&] { return retry_text(task, error); });
}

void Results::fail_unsent(Task* task, const Blob& error) {
  const auto decoded = error_of(error.bytes());
  recorder_.task_failed(*task, submission_.parent_of(*task), decoded ? &*decoded : nullptr,
                        nullptr);
  settle_with_error(task, error);
}

void Results::settle_with_error(Task* task, const Blob& error) {
  objects_.count_error();
  // The error is the last item of the stream as well.
  bool stream = task->function->spec.num_returns() < 0;
  if (stream) streams_.end(task, &error);
  for (Ref& ref : task->returns) {
    auto& entry = entry_of(ref);
    entry.unseen_error = objects_.reports_unseen() && !task->cancelled && !stream;
    objects_.set_blob(entry, error);
  }
  drop(task);
}

void Results::fail(Task* task, const proto::ErrorValue& error) {
  task->cancelled |= error.code() == static_cast<int>(Code::kCancelled);
  recorder_.task_failed(*task, submission_.parent_of(*task), &error, &error.exit());
  settle_with_error(task, copy_blob(as_bytes(encode_error(error))));
}

void Results::drop(Task* task) {
  if (task->function->captured_tasks >= 0) submission_.copy_ended(*task->function);
  submission_.tasks().give_back(task);
}

}  // namespace rt::worker
