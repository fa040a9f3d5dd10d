#include "worker/service/submission.h"

#include <utility>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/proto/node_manager.pb.h"
#include "common/rpc/client.h"
#include "worker/core/runtime_env.h"
#include "worker/core/value_codec.h"
#include "worker/core/wire.h"
#include "worker/service/actor_client.h"
#include "worker/service/arguments.h"
#include "worker/service/current_task.h"
#include "worker/service/groups.h"
#include "worker/service/lease_client.h"
#include "worker/service/node_directory.h"
#include "worker/service/objects.h"
#include "worker/service/pump.h"
#include "worker/service/recorder.h"
#include "worker/service/streams.h"
#include "worker/session_over.h"

namespace rt::worker {

Submission::Submission(const Parts& parts, std::function<int64_t(int64_t for_us)> waiting_for_turn)
    : parts_(parts),
      results_(*this, parts.actors, parts.leases, parts.objects, parts.streams, parts.recorder,
               parts.notices),
      cancellation_(parts.objects, parts.peers, parts.streams, parts.actors, parts.leases,
                    results_),
      waiting_(parts.shared.loop, tasks_,
               {.held_back =
                    [this] {
                      assert_locked();
                      return parts_.actors.calls().count_held_back();
                    },
                .waiting_for_turn = std::move(waiting_for_turn),
                .tell =
                    [this](int64_t for_arguments, int64_t for_actors) {
                      assert_locked();
                      return report_waiting(for_arguments, for_actors);
                    }}) {}

bool Submission::report_waiting(int64_t for_arguments, int64_t for_actors) {
  if (parts_.shared.stopping || !parts_.nodes.is_local_open()) return false;
  proto::WaitingTasks waiting;
  waiting.set_for_arguments(for_arguments);
  waiting.set_for_actors(for_actors);
  rpc::notify(*parts_.nodes.local(), &proto::NodeManagerService::Stub::SetWaiting, waiting);
  parts_.nodes.local()->flush();
  return true;
}

Status Submission::build_args(WorkerLock& lock, Task& task, std::span<const Arg> args) {
  for (const Arg& arg : args) {
    Task::Arg out;
    if (arg.ref) {
      out.ref = *arg.ref;
    } else {
      const ValueParts& parts = *arg.value;
      std::string packed =
          parts.contained.empty() ? std::string() : parts_.objects.pack(parts.contained);
      size_t size = encoded_size(parts, packed.size());
      if (static_cast<int64_t>(size) > parts_.shared.settings().max_inline_bytes) {
        auto ref = parts_.objects.store_large(lock, parts, packed, size);
        if (!ref) return ref.error();
        out.ref = *ref;
      } else {
        out.offset = static_cast<uint32_t>(task.inlined.size());
        out.size = static_cast<uint32_t>(size);
        append_value(task.inlined, parts, packed, size);
        task.held.insert(task.held.end(), parts.contained.begin(), parts.contained.end());
      }
    }
    task.args.push_back(std::move(out));
  }
  // The session may have ended while a large argument was written, because that frees the mutex.
  return parts_.shared.stopping ? Status(session_over()) : Status();
}

void Submission::make_returns(Task& task, std::vector<Ref>* returns) {
  int count = task.function->spec.num_returns();
  if (count < 0) {
    parts_.streams.open(task, returns);
    count = 1;
  }
  for (int i = 1; i <= count; ++i) {
    Ref ref(parts_.objects.refs().create(make_object_id(task.id, i)));
    entry_of(ref).producer = &task;
    task.returns.push_back(ref);
    returns->push_back(std::move(ref));
  }
}

Status Submission::submit(const Template* function, std::span<const Arg> args,
                          std::vector<Ref>* returns) {
  WorkerLock lock(parts_.shared.mutex);
  if (parts_.shared.stopping) return session_over();
  parts_.objects.refs().drain_releases();
  Task* task = tasks_.take();
  task->id = make_task_id(next_number(), parts_.shared.context.job_id);
  task->parent = submitting_task();
  task->created_us = wall_now_us();
  task->function = parts_.groups.capturing() ? parts_.groups.for_submitter(function) : function;
  task->retries_left = function->spec.max_retries();
  if (Status built = build_args(lock, *task, args); !built) {
    results_.drop(task);
    return built;
  }
  make_returns(*task, returns);
  if (!wait_for_args(task, [this, task] {
        assert_locked();
        task_ready(task);
      }))
    task_ready(task);
  parts_.pump.submitted();
  return {};
}

void Submission::task_ready(Task* task) {
  if (args_failed(task)) return;
  prefer_arguments_node(*task, parts_.shared.context.node_id, parts_.objects.store(),
                        parts_.leases.submitter());
  parts_.leases.submitter().submit(task);
}

namespace {

void write_locations(wire::Writer& writer, const ObjectEntry& entry) {
  writer.fields(entry.size, static_cast<uint16_t>(entry.details().locations.size()));
  for (const auto& location : entry.details().locations) {
    writer.fields(location.node);
    writer.text(location.ip);
    writer.fields(static_cast<int32_t>(location.port));
  }
}

}  // namespace

TaskId Submission::parent_or_driver(const TaskId& parent) const {
  return parent.is_nil() && parts_.shared.options.is_driver
             ? driver_task_id(parts_.shared.context.job_id)
             : parent;
}

void Submission::write_task(Link& link, const Task& task) {
  std::string& out = link.connection->begin_flat(wire::kTasks);
  wire::Writer writer(out);
  uint32_t id = task.function->id;
  if (link.templates_sent.size() <= id) link.templates_sent.resize(id + 1);
  if (!link.templates_sent[id]) {
    link.templates_sent[id] = true;
    writer.fields(wire::kTemplateRecord, id,
                  static_cast<uint32_t>(task.function->serialized.size()));
    writer.bytes(task.function->serialized);
  }
  if (TaskId parent = parent_of(task); parent != link.parent_sent) {
    writer.fields(wire::kParentRecord, parent);
    link.parent_sent = parent;
  }
  writer.fields(wire::kTaskRecord, task.seq, id, task.id, task.attempt, task.created_us);
  if (task.attempt > 0 && task.function->spec.num_returns() < 0) {
    GeneratorStream* stream = parts_.streams.find(task.id);
    const uint32_t taken = stream ? stream->taken() : kAllItems;
    writer.fields(stream ? stream->received() : 0, taken);
    if (stream) stream->attempt_sent(link.weak_from_this(), task.seq, taken);
  }
  writer.fields(static_cast<uint32_t>(task.args.size()));
  size_t inlined = 0;
  for (const Task::Arg& arg : task.args) {
    if (!arg.ref) {
      writer.inline_value(std::string_view(task.inlined).substr(arg.offset, arg.size));
      continue;
    }
    const auto& entry = entry_of(arg.ref);
    if (entry.state == ObjectState::kInMemory)
      entry.unseen_error.store(false, std::memory_order_relaxed);
    if (entry.state == ObjectState::kInMemory &&
        inlined + entry.blob.size <= wire::kMaxInlinedBytes) {
      inlined += entry.blob.size;
      writer.inline_value(as_view(entry.blob.bytes()));
      continue;
    }
    bool in_store = entry.state != ObjectState::kInMemory;
    writer.fields(in_store ? wire::ValuePlace::kInStore : wire::ValuePlace::kAtOwner, entry.id);
    if (in_store) write_locations(writer, entry);
    writer.text(parts_.objects.owner_of(entry).SerializeAsString());
  }
  link.connection->end_flat();
}

bool Submission::move_to_arguments(const Link& link, Task* task) {
  return worker::move_to_arguments(task, link, results_.location_of(link).node, parts_.nodes,
                                   parts_.notices, parts_.leases.submitter());
}

void Submission::copy_ended(const Template& copy) { parts_.groups.task_ended(copy); }

void Submission::announce_recording(Link& link) {
  if (!parts_.recorder.profiles() || std::exchange(link.recording_announced, true)) return;
  wire::Writer(link.connection->begin_flat(wire::kTasks)).fields(wire::kRecordedRecord);
  link.connection->end_flat();
}

Task* Submission::producer_of(const ObjectEntry* entry) {
  return entry && entry->owned && !entry->ready ? entry->producer : nullptr;
}

const Template* Submission::make_template(proto::TaskTemplate spec) {
  std::string bytes = spec.SerializeAsString();
  auto& slot = template_by_bytes_[bytes];
  if (slot) return slot;
  auto made = std::make_unique<Template>();
  made->id = static_cast<uint32_t>(templates_.size());
  made->serialized = bytes;
  // An actor's methods run where the actor is; everything else is scheduled.
  if (spec.function().class_name().empty()) {
    spec.set_runtime_env(merge_runtime_env(parts_.shared.runtime_env(), spec.runtime_env()));
    made->serialized = spec.SerializeAsString();
    if (GroupId::is_valid(spec.group_id()))
      parts_.groups.use(GroupId::from_binary(spec.group_id()));
    made->scheduling_class = parts_.leases.submitter().scheduling_class(spec);
  }
  made->alone = spec.max_calls() > 0;
  made->spec = std::move(spec);
  slot = made.get();
  templates_.push_back(std::move(made));
  return slot;
}

uint32_t Submission::take_template_number() {
  templates_.push_back(nullptr);
  return static_cast<uint32_t>(templates_.size() - 1);
}

}  // namespace rt::worker
