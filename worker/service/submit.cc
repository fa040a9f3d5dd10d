// Tasks out, replies in, and cancellation by the owner.
#include <fmt/core.h>
#include <unistd.h>

#include "worker/core/death.h"
#include "worker/core/lease_demand.h"
#include "worker/service/arguments.h"
#include "worker/service/executing_task.h"
#include "worker/service/groups.h"
#include "worker/service/impl.h"

namespace rt::worker {

Status Worker::Impl::build_args(Lock& lock, Task& task, std::span<const Arg> args) {
  for (const Arg& arg : args) {
    Task::Arg out;
    if (arg.ref) {
      out.ref = *arg.ref;
    } else {
      const ValueParts& parts = *arg.value;
      std::string packed = parts.contained.empty() ? std::string() : objects.pack(parts.contained);
      size_t size = encoded_size(parts, packed.size());
      if (static_cast<int64_t>(size) > settings.max_inline_bytes) {
        auto ref = objects.store_large(lock, parts, packed, size);
        if (!ref) return ref.error();
        out.ref = *ref;
      } else {
        out.offset = static_cast<uint32_t>(task.inlined.size());
        out.size = static_cast<uint32_t>(size);
        task.inlined.resize(task.inlined.size() + size);
        encode_value(parts, packed, reinterpret_cast<uint8_t*>(task.inlined.data()) + out.offset,
                     plain_copy);
        task.held.insert(task.held.end(), parts.contained.begin(), parts.contained.end());
      }
    }
    task.args.push_back(std::move(out));
  }
  return {};
}

void Worker::Impl::make_returns(Task& task, std::vector<Ref>* returns) {
  int count = task.function->spec.num_returns();
  if (count < 0) {
    streams.open(task, returns);
    count = 1;
  }
  for (int i = 1; i <= count; ++i) {
    Ref ref(refs->create(make_object_id(task.id, i)));
    static_cast<ObjectEntry*>(ref.entry())->producer = &task;
    task.returns.push_back(ref);
    returns->push_back(std::move(ref));
  }
}

Status Worker::Impl::submit(const Template* function, std::span<const Arg> args,
                            std::vector<Ref>* returns) {
  Lock lock(mutex);
  if (stopping) return make_error(Code::kUnavailable, "Ray has been shut down");
  refs->drain_releases();
  Task* task = tasks.take();
  task->id = make_task_id(++next_task_unique, context.job_id);
  task->parent = submitting_task();
  task->created_us = wall_now_us();
  task->function = groups->capturing() ? groups->for_submitter(function) : function;
  task->retries_left = function->spec.max_retries();
  if (Status built = build_args(lock, *task, args); !built) {
    drop_task(task);
    return built;
  }
  make_returns(*task, returns);
  if (!wait_for_args(task, [this, task] { task_ready(task); })) task_ready(task);
  pump.submitted();
  return {};
}

void Worker::Impl::task_ready(Task* task) {
  if (args_failed(task)) return;
  prefer_arguments_node(*this, *task);
  submitter->submit(task);
}

namespace {

void write_locations(wire::Writer& writer, const ObjectEntry& entry) {
  writer.number(entry.size);
  writer.number(static_cast<uint16_t>(entry.details().locations.size()));
  for (const auto& location : entry.details().locations) {
    writer.bytes(location.node.view());
    writer.number(static_cast<uint16_t>(location.ip.size()));
    writer.bytes(location.ip);
    writer.number(static_cast<int32_t>(location.port));
  }
}

}  // namespace

// Tasks that a driver submits outside of tasks have the driver's own task as their parent.
TaskId Worker::Impl::parent_or_driver(const TaskId& parent) const {
  return parent.is_nil() && options.is_driver ? driver_task_id(context.job_id) : parent;
}

void Worker::Impl::write_task(Link& link, const Task& task) {
  std::string& out = link.connection->begin_flat(wire::kTasks);
  wire::Writer writer(out);
  uint32_t id = task.function->id;
  if (link.templates_sent.size() <= id) link.templates_sent.resize(id + 1);
  if (!link.templates_sent[id]) {
    link.templates_sent[id] = true;
    writer.number(wire::kTemplateRecord);
    writer.number(id);
    writer.number(static_cast<uint32_t>(task.function->serialized.size()));
    writer.bytes(task.function->serialized);
  }
  if (TaskId parent = parent_of(task); parent != link.parent_sent) {
    writer.number(wire::kParentRecord);
    writer.bytes(parent.view());
    link.parent_sent = parent;
  }
  writer.number(wire::kTaskRecord);
  writer.number(task.seq);
  writer.number(id);
  writer.bytes(task.id.view());
  writer.number(task.attempt);
  writer.number(task.created_us);
  if (task.attempt > 0 && task.function->spec.num_returns() < 0) {
    GeneratorStream* stream = streams.find(task.id);
    writer.number(stream ? stream->received() : 0);
    writer.number(stream ? stream->taken() : kAllItems);
  }
  writer.number(static_cast<uint32_t>(task.args.size()));
  size_t inlined = 0;
  for (const Task::Arg& arg : task.args) {
    if (!arg.ref) {
      writer.number(uint8_t{0});
      writer.number(arg.size);
      writer.bytes(std::string_view(task.inlined).substr(arg.offset, arg.size));
      continue;
    }
    const auto& entry = *static_cast<const ObjectEntry*>(arg.ref.entry());
    if (entry.state == ObjectState::kInMemory)
      entry.unseen_error.store(false, std::memory_order_relaxed);
    if (entry.state == ObjectState::kInMemory &&
        inlined + entry.blob.size <= wire::kMaxInlinedBytes) {
      inlined += entry.blob.size;
      writer.number(uint8_t{0});
      writer.number(static_cast<uint32_t>(entry.blob.size));
      writer.bytes(entry.blob.bytes());
      continue;
    }
    bool in_store = entry.state != ObjectState::kInMemory;
    writer.number(static_cast<uint8_t>(in_store ? 1 : 2));
    writer.bytes(entry.id.view());
    if (in_store) write_locations(writer, entry);
    std::string owner = objects.owner_of(entry).SerializeAsString();
    writer.number(static_cast<uint16_t>(owner.size()));
    writer.bytes(owner);
  }
  link.connection->end_flat();
}

void Worker::Impl::push_task(Lease& lease, Task& task) {
  Link& link = *static_cast<Link*>(lease.connection);
  write_task(link, task);
  // An idle worker is woken at once; a busy one gets the task with the next write.
  if (lease.in_flight.size() == 1 || link.connection->queued_bytes() > 8192)
    link.connection->flush();
}

void Worker::Impl::take_back(Lease& lease, int count) {
  Link& link = *static_cast<Link*>(lease.connection);
  std::string& out = link.connection->begin_flat(wire::kTakeBack);
  wire::Writer(out).number(static_cast<uint32_t>(count));
  link.connection->end_flat();
  link.connection->flush();
}

void Worker::Impl::write_gpus(Link& link, const std::vector<std::string>& names) {
  wire::Writer writer(link.connection->begin_flat(wire::kTasks));
  writer.number(wire::kGpuRecord);
  writer.number(static_cast<uint16_t>(names.size()));
  for (const std::string& name : names) {
    writer.number(static_cast<uint16_t>(name.size()));
    writer.bytes(name);
  }
  link.connection->end_flat();
  link.gpus_sent = !names.empty();
}

void Worker::Impl::announce_recording(Link& link) {
  if (!recorder.profiles() || std::exchange(link.recording_announced, true)) return;
  wire::Writer(link.connection->begin_flat(wire::kTasks)).number(wire::kRecordedRecord);
  link.connection->end_flat();
}

void Worker::Impl::connect_lease(Lease& lease) {
  uint64_t key = lease.key;
  peers.with(lease.worker, [this, key](Result<std::shared_ptr<Link>> link) {
    int64_t now = steady_now_us();
    Lease* lease = submitter->find_lease(key);
    if (!lease) return;
    if (!link) {
      submitter->lease_broken(key);
      return;
    }
    (*link)->lease_key = key;
    lease->connection = link->get();
    announce_recording(**link);
    if (!lease->gpu_ids.empty() || (*link)->gpus_sent) write_gpus(**link, lease->gpu_ids);
    submitter->lease_ready(key, now);
  });
}

void Worker::Impl::send_demand(const NodeKey& node, const SchedulingClass& c, int want,
                               int64_t backlog, const std::string& what, uint64_t last_answer) {
  proto::LeaseDemand demand = lease_demand(node, c, want, backlog, what);
  *demand.mutable_job() = options.job_config;
  demand.mutable_job()->set_job_id(context.job_id.binary());
  demand.set_last_answer(last_answer);
  nodes.with(node, [this, node, demand](Result<std::shared_ptr<rpc::Connection>> connection) {
    if (!connection) {
      // The node has just died. The demand goes back to the local node-manager, or again to the
      // node of its bundle.
      if (!node.is_nil() && demand.want() != 0) nodes.report_gone_soon(node);
      return;
    }
    rpc::notify(**connection, &proto::NodeManagerService::Stub::SetLeaseDemand, demand);
    (*connection)->flush();
  });
}

void Worker::Impl::return_lease(Lease& lease, bool worker_failed) {
  if (auto* link = static_cast<Link*>(lease.connection);
      link && lease.state != Lease::State::kBroken)
    link->lease_key = 0;
  proto::LeaseReturn note;
  note.set_lease_id(lease.id);
  note.set_worker_failed(worker_failed);
  note.set_worker_leaves(lease.leaving);
  returned_at.insert(lease.node);
  nodes.with(lease.node, [note](Result<std::shared_ptr<rpc::Connection>> connection) {
    if (connection) rpc::notify(**connection, &proto::NodeManagerService::Stub::ReturnLease, note);
  });
}

void Worker::Impl::ask_exit(Lease& lease) {
  ask_exit(lease.worker, lease.node,
           [this, key = lease.key, pid = lease.pid](proto::ExitInfo info) {
             if (info.pid() == 0) info.set_pid(pid);
             submitter->worker_exit(key, info);
           });
}

void Worker::Impl::ask_exit(const proto::WorkerAddress& worker, const NodeKey& node,
                            std::function<void(proto::ExitInfo)> done) {
  proto::WorkerExitRequest request;
  request.set_worker_id(worker.worker_id());
  auto answer = [done = std::move(done), ip = worker.ip(), id = worker.worker_id(),
                 node](Result<proto::WorkerExitReply> reply) {
    proto::ExitInfo info;
    if (reply) {
      info = reply->info();
    } else if (!node.is_nil()) {
      info.set_kind(proto::ExitInfo::NODE_DIED);
      info.set_node_id(node.binary());
    } else {
      info.set_message(reply.error().message);
    }
    if (info.ip().empty()) info.set_ip(ip);
    if (info.worker_id().empty()) info.set_worker_id(id);
    done(std::move(info));
  };
  nodes.with(node, [request, answer](Result<std::shared_ptr<rpc::Connection>> connection) {
    if (!connection) return answer(connection.error());
    rpc::call(**connection, &proto::NodeManagerService::Stub::GetWorkerExit, request, 5'000'000,
              answer);
  });
}

void Worker::Impl::on_replies(const std::shared_ptr<Link>& link, Bytes body) {
  wire::Reader reader(body);
  int64_t now = steady_now_us();
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
    ActorLink* actor = link->actor.is_nil() ? nullptr : actors->find(link->actor);
    Task* task = !reader.ok() ? nullptr
                 : actor      ? actors->reply_of(*actor, seq)
                              : submitter->reply_of(link->lease_key, seq);
    if (!task) {
      link->connection->close(make_error(
          Code::kProtocol, fmt::format("a reply to task {} that is not in flight", seq)));
      return;
    }
    if (flags & wire::kLeaving && !actor) submitter->worker_leaves(link->lease_key);
    if (status == wire::TaskStatus::kNotStarted) {
      // An actor returns a call unstarted if the call was cancelled, or if the actor leaves.
      if (actor) {
        auto refusal = error_of(count > 0 ? returns[0].value : Bytes());
        actors->finished(*actor, task);
        fail_task(task, refusal
                            ? actor_death_error(task, link->actor, &actor->info, refusal->exit())
                            : cancelled_error(*task));
      } else {
        submitter->task_returned(link->lease_key, task, now);
      }
      continue;
    }
    if (status == wire::TaskStatus::kErrorRetry && task->retries_left != 0 && !task->cancelled) {
      if (auto error = error_of(count > 0 ? returns[0].value : Bytes()))
        notices.attempt_failed([&] { return retry_text(*task, *error); });
      actor ? actors->retry(*actor, task)
            : submitter->retry(link->lease_key, task, Submitter::Cost::kRetry, now);
      continue;
    }
    if (status == wire::TaskStatus::kNoRoom && !actor && move_to_arguments(*this, *link, task))
      continue;
    ObjectLocation node;
    if (std::any_of(returns, returns + count, [](const Return& r) { return r.in_store; }))
      node = location_of(*link);
    // The lease comes first: its next task may be sent while the results of this one are stored.
    // The lease may be gone afterwards.
    actor ? actors->finished(*actor, task)
          : submitter->finished(link->lease_key, task, duration, now);
    complete(task, node, {returns, count}, status);
  }
  if (!reader.ok()) link->connection->close(make_error(Code::kProtocol, "malformed reply"));
}

Return read_return(wire::Reader& reader) {
  Return out;
  out.in_store = reader.number<uint8_t>() == 1;
  if (out.in_store) out.size = reader.number<int64_t>();
  out.value = reader.take(reader.number<uint32_t>());
  return out;
}

Task* Worker::Impl::task_in_flight(Link& link, uint32_t seq) {
  if (link.actor.is_nil()) return submitter->reply_of(link.lease_key, seq);
  ActorLink* actor = actors->find(link.actor);
  return actor ? actors->reply_of(*actor, seq) : nullptr;
}

ObjectLocation Worker::Impl::location_of(const Link& link) {
  ActorLink* actor = link.actor.is_nil() ? nullptr : actors->find(link.actor);
  const proto::WorkerAddress& worker =
      actor ? actor->info.address() : submitter->find_lease(link.lease_key)->worker;
  return {NodeId::from_binary(worker.node_id()), worker.ip(), worker.port()};
}

void Worker::Impl::store_return(ObjectEntry& entry, const Return& value, const ObjectLocation& node,
                                bool cancelled) {
  if (!value.in_store) {
    auto decoded = decode_value(value.value);
    if (decoded && !decoded->packed_refs.empty())
      entry.mutable_details().contained = objects.take_refs(decoded->packed_refs, true, false);
    if (decoded && decoded->kind == ValueKind::kError) {
      objects.count_error();
      entry.unseen_error = objects.reports_unseen() && !cancelled;
    }
    objects.set_blob(entry, copy_blob(value.value));
    return;
  }
  if (!value.value.empty())
    entry.mutable_details().contained = objects.take_refs(value.value, true, false);
  entry.state = ObjectState::kInStore;
  entry.size = value.size;
  entry.mutable_details().locations.push_back(node);
  objects.mark_ready(entry);
}

void Worker::Impl::complete(Task* task, const ObjectLocation& node, std::span<const Return> returns,
                            wire::TaskStatus status) {
  if (task->function->spec.num_returns() < 0) {
    streams.complete(task, returns, status != wire::TaskStatus::kOk);
    return drop_task(task);
  }
  for (size_t i = 0; i < task->returns.size(); ++i) {
    auto& entry = *static_cast<ObjectEntry*>(task->returns[i].entry());
    // An error stands for all returns.
    const Return* r = i < returns.size() ? &returns[i]
                      : returns.empty()  ? nullptr
                                         : &returns.back();
    if (!r) {
      objects.set_error(entry,
                        system_error(Code::kInternal, "the worker's reply holds no value", *task));
      continue;
    }
    store_return(entry, *r, node, task->cancelled);
  }
  drop_task(task);
}

void Worker::Impl::attempt_failed(const Task& task, const proto::ErrorValue& error) {
  recorder.task_failed(task, parent_of(task), &error, &error.exit());
  notices.attempt_failed([&] { return retry_text(task, error); });
}

void Worker::Impl::fail_with_blob(Task* task, const Blob& error) {
  const auto decoded = error_of(error.bytes());
  recorder.task_failed(*task, parent_of(*task), decoded ? &*decoded : nullptr, nullptr);
  settle_with_error(task, error);
}

void Worker::Impl::settle_with_error(Task* task, const Blob& error) {
  objects.count_error();
  // The error is the last item of the stream as well.
  bool stream = task->function->spec.num_returns() < 0;
  if (stream) streams.end(task, &error);
  for (Ref& ref : task->returns) {
    auto& entry = *static_cast<ObjectEntry*>(ref.entry());
    entry.unseen_error = objects.reports_unseen() && !task->cancelled && !stream;
    objects.set_blob(entry, error);
  }
  drop_task(task);
}

void Worker::Impl::fail_task(Task* task, const proto::ErrorValue& error) {
  task->cancelled |= error.code() == static_cast<int>(Code::kCancelled);
  recorder.task_failed(*task, parent_of(*task), &error, &error.exit());
  settle_with_error(task, copy_blob(as_bytes(encode_error(error))));
}

void Worker::Impl::drop_task(Task* task) {
  if (task->function->captured_tasks >= 0) groups->task_ended(*task->function);
  tasks.give_back(task);
}

Task* Worker::Impl::producer_of(const ObjectEntry* entry) const {
  return entry && entry->owned && !entry->ready ? entry->producer : nullptr;
}

Status Worker::Impl::cancel(const Ref& ref, bool force, bool recursive) {
  Lock lock(mutex);
  auto& entry = *static_cast<ObjectEntry*>(ref.entry());
  Status status;
  if (Task* task = producer_of(&entry)) {
    status = cancel_task(task, force, recursive);
  } else if (!entry.owned && !entry.ready) {
    proto::CancelTask request;
    request.set_task_id(task_of(entry.id).binary());
    request.set_force(force);
    request.set_recursive(recursive);
    peers.with(*entry.details().owner, [request](Result<std::shared_ptr<Link>> link) {
      if (link)
        rpc::call(*(*link)->connection, &proto::WorkerService::Stub::Cancel, request, 30'000'000,
                  [](Result<proto::CancelReply>) {});
    });
  }
  loop->flush_all();
  // Another thread may wait for the results that have just failed.
  pump.wake_reader();
  pump.wake_followers();
  return status;
}

Status Worker::Impl::cancel_task(Task* task, bool force, bool recursive) {
  auto tell = [&](void* connection) {
    if (!connection) return;
    Link& link = *static_cast<Link*>(connection);
    wire::Writer writer(link.connection->begin_flat(wire::kCancel));
    writer.number(task->seq);
    writer.number(static_cast<uint8_t>((force ? wire::kCancelForce : 0) |
                                       (recursive ? wire::kCancelRecursive : 0)));
    link.connection->end_flat();
    link.connection->flush();
  };
  if (GeneratorStream* stream = streams.find(task->id)) stream->cancel();
  if (!task->function->scheduling_class) {
    if (force)
      return make_error(
          Code::kInvalid,
          "force=True is not supported for actor tasks: use ray.kill to end the actor");
    ActorLink& actor = actors->link(actor_of(task->id));
    if (actors->cancel(actor, task)) tell(actor.connection);
    return {};
  }
  bool waits_for_args;
  if (Lease* lease = submitter->cancel(task, &waits_for_args)) {
    tell(lease->state == Lease::State::kReady ? lease->connection : nullptr);
    if (force) end_worker_of(lease->key, task->id);
  }
  if (waits_for_args) fail_task(task, cancelled_error(*task));
  return {};
}

// Lets the node-manager kill a worker that does not end as it was told, because it is stopped or
// stuck.
void Worker::Impl::end_worker_of(uint64_t lease_key, const TaskId& id) {
  constexpr int64_t kGraceUs = 1'000'000;
  loop->run_after(kGraceUs, [this, lease_key, id] {
    const Lease* lease = submitter->find_lease(lease_key);
    // Only the first task in flight can be running.
    if (!lease || lease->in_flight.empty() || lease->in_flight.front()->id != id) return;
    proto::KillWorkerRequest request;
    request.set_worker_id(lease->worker.worker_id());
    request.set_why(proto::ExitInfo::KILLED_BY_USER);
    request.set_message("its task was cancelled with force=True");
    nodes.with(lease->node, [request](Result<std::shared_ptr<rpc::Connection>> connection) {
      if (!connection) return;
      rpc::notify(**connection, &proto::NodeManagerService::Stub::KillWorker, request);
      (*connection)->flush();
    });
  });
}

void Worker::Impl::cancel_children(const TaskId& parent, bool force) {
  // Cancelling one task may end others.
  std::vector<Ref> results;
  // Entries that nobody refers to any more may name tasks that are gone.
  refs->drain_releases();
  refs->for_each([&](ObjectEntry& entry) {
    Task* task = producer_of(&entry);
    if (task && task->parent == parent && task->returns.front().entry() == &entry)
      results.push_back(task->returns.front());
  });
  for (const Ref& ref : results) {
    Task* task = producer_of(static_cast<ObjectEntry*>(ref.entry()));
    if (task) (void)cancel_task(task, force && task->function->scheduling_class, true);
  }
}

}  // namespace rt::worker
