#include "worker/service/task_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "worker/core/death.h"
#include "worker/service/execution.h"
#include "worker/service/groups.h"
#include "worker/service/objects.h"

namespace rt::worker {

TaskQueue::TaskQueue(Execution& execution, Objects& objects, Groups& groups, net::PollLoop& loop,
                     const Options& options, const Context& context, AdoptJob adopt_job)
    : execution_(execution),
      objects_(objects),
      groups_(groups),
      loop_(loop),
      options_(options),
      context_(context),
      adopt_job_(std::move(adopt_job)) {}

TaskQueue::~TaskQueue() = default;

ExecTemplate* TaskQueue::exec_template(std::string_view serialized) {
  auto [it, added] = templates_.try_emplace(std::string(serialized));
  if (!added) return it->second.get();
  auto made = std::make_unique<ExecTemplate>();
  if (!made->spec.ParseFromArray(serialized.data(), static_cast<int>(serialized.size()))) {
    templates_.erase(it);
    return nullptr;
  }
  made->display = display_name(made->spec.function());
  groups_.executes(made->spec);
  it->second = std::move(made);
  return it->second.get();
}

Value TaskQueue::argument(DecodedValue&& decoded, Keepalive keepalive) {
  const Bytes packed_refs = decoded.packed_refs;
  Value value = to_value(std::move(decoded), std::move(keepalive));
  if (!packed_refs.empty()) value.contained = objects_.take_refs(packed_refs, false, false);
  return value;
}

bool TaskQueue::read_args(IncomingTask& task, wire::Reader& reader, int count,
                          std::vector<IncomingTask::Fetch>* unknown) {
  // All inline arguments share one allocation.
  std::vector<Bytes> inlined(count);
  size_t total = 0;
  for (int i = 0; i < count; ++i) {
    const auto place = reader.number<wire::ValuePlace>();
    if (place == wire::ValuePlace::kInline) {
      inlined[i] = reader.take(reader.number<uint32_t>());
      if (inlined[i].size() < kValueHeader) return false;
      total += (inlined[i].size() + 7) & ~size_t{7};
      continue;
    }
    const bool in_store = place == wire::ValuePlace::kInStore;
    if (!in_store && place != wire::ValuePlace::kAtOwner) return false;
    IncomingTask::Fetch arg;
    arg.index = static_cast<size_t>(i);
    arg.id = ObjectId::from_binary(as_view(reader.take(ObjectId::kSize)));
    if (in_store) {
      auto size = reader.number<int64_t>();
      auto locations = reader.number<uint16_t>();
      for (int l = 0; l < locations && reader.ok(); ++l) {
        store::Location location;
        location.node = NodeId::from_binary(as_view(reader.take(NodeId::kSize)));
        location.ip = std::string(as_view(reader.take(reader.number<uint16_t>())));
        location.port = reader.number<int32_t>();
        location.size = size;
        arg.locations.push_back(std::move(location));
      }
    }
    Bytes owner = reader.take(reader.number<uint16_t>());
    if (!arg.owner.ParseFromArray(owner.data(), static_cast<int>(owner.size()))) return false;
    (in_store ? task.to_fetch : *unknown).push_back(std::move(arg));
  }
  if (!reader.ok()) return false;
  std::shared_ptr<uint8_t[]> memory;
  if (total) memory = std::make_shared_for_overwrite<uint8_t[]>(total);
  size_t at = 0;
  task.args.resize(count);
  for (int i = 0; i < count; ++i) {
    if (inlined[i].empty()) continue;
    std::memcpy(memory.get() + at, inlined[i].data(), inlined[i].size());
    Bytes own{memory.get() + at, inlined[i].size()};
    at += (own.size() + 7) & ~size_t{7};
    auto decoded = decode_value(own);
    if (!decoded) return false;
    if (decoded->kind == ValueKind::kError) {
      task.failed = true;
      task.failure = std::string(as_view(own));
    }
    task.args[i] = argument(std::move(*decoded), memory);
  }
  return true;
}

void return_unstarted(const IncomingTask& task, std::string_view why) {
  wire::Writer writer(task.link->connection->begin_flat(wire::kReplies));
  writer.fields(task.seq, wire::TaskStatus::kNotStarted, uint32_t{0},
                static_cast<uint32_t>(why.empty() ? 0 : 1));
  if (!why.empty()) writer.inline_value(why);
  task.link->connection->end_flat();
}

void TaskQueue::on_tasks(const std::shared_ptr<Link>& link, Bytes body) {
  wire::Reader reader(body);
  if (link->job_config && context_.job_id.is_nil()) adopt_job_(*link->job_config);
  auto refuse = [&](const char* what) {
    link->connection->close(make_error(Code::kProtocol, what));
  };
  while (!reader.at_end()) {
    auto tag = reader.number<uint8_t>();
    if (tag == wire::kTemplateRecord) {
      auto id = reader.number<uint32_t>();
      Bytes bytes = reader.take(reader.number<uint32_t>());
      ExecTemplate* t = reader.ok() ? exec_template(as_view(bytes)) : nullptr;
      if (!t) return refuse("malformed task template");
      link->templates[id] = t;
      continue;
    }
    if (tag == wire::kGpuRecord) {
      link->gpu_ids.resize(reader.number<uint16_t>());
      for (std::string& name : link->gpu_ids)
        name = std::string(as_view(reader.take(reader.number<uint16_t>())));
      if (!reader.ok()) return refuse("malformed GPU ids");
      continue;
    }
    if (tag == wire::kParentRecord) {
      Bytes id = reader.take(TaskId::kSize);
      if (!reader.ok()) return refuse("malformed parent of tasks");
      link->parent = TaskId::from_binary(as_view(id));
      continue;
    }
    if (tag != wire::kTaskRecord) {
      if (tag != wire::kRecordedRecord) return refuse("malformed task");
      link->submissions_recorded = true;
      continue;
    }
    auto task = std::make_shared<IncomingTask>();
    task->link = link;
    task->caller = link.get();
    task->seq = reader.number<uint32_t>();
    auto found = link->templates.find(reader.number<uint32_t>());
    task->id = TaskId::from_binary(as_view(reader.take(TaskId::kSize)));
    task->attempt = reader.number<uint8_t>();
    task->parent = link->parent;
    task->created_us = reader.number<int64_t>();
    if (task->attempt > 0 && found != link->templates.end() &&
        found->second->spec.num_returns() < 0) {
      task->items_known = reader.number<uint32_t>();
      task->items_taken = reader.number<uint32_t>();
    }
    int count = static_cast<int>(reader.count(wire::kMinValueBytes));
    if (!reader.ok() || found == link->templates.end()) return refuse("malformed task");
    task->function = found->second;
    std::vector<IncomingTask::Fetch> unknown;
    if (!read_args(*task, reader, count, &unknown)) return refuse("malformed task arguments");
    const bool in_store = !task->to_fetch.empty() && has_store(*task);
    if (unknown.empty()) {
      line_.add(std::move(task), 0, in_store);
      continue;
    }
    line_.add(task, static_cast<int>(unknown.size()), in_store);
    for (const auto& arg : unknown) ask_for_arg(task, arg.index, arg.id, arg.owner);
  }
  if (line_.refuses()) loop_.flush_all();
}

void TaskQueue::on_take_back(const std::shared_ptr<Link>& link, Bytes body) {
  wire::Reader reader(body);
  line_.take_back(*link, reader.number<uint32_t>());
  loop_.flush_all();
}

void TaskQueue::set_items_taken(const Link& link, uint32_t seq, uint32_t taken) {
  for (const auto& waiting : line_.tasks()) {
    auto& task = static_cast<IncomingTask&>(*waiting);
    if (task.caller == &link && task.seq == seq)
      task.items_taken = std::max(task.items_taken, taken);
  }
}

bool TaskQueue::cancel(const std::shared_ptr<Link>& link, uint32_t seq) {
  if (!line_.cancel(*link, seq)) return false;
  link->connection->flush();
  return true;
}

void TaskQueue::return_task(LineTask& waiting) {
  return_unstarted(static_cast<IncomingTask&>(waiting));
}

void TaskQueue::refuse_call(LineTask& waiting) {
  auto& task = static_cast<IncomingTask&>(waiting);
  if (task.link && task.link->open) return_unstarted(task, refusal_);
}

void TaskQueue::tell_blocked(bool blocked) { execution_.tell_blocked(blocked); }

void TaskQueue::add_creation(const proto::CreateActorRequest& request) {
  const proto::ActorSpec& spec = request.spec();
  auto task = std::make_shared<IncomingTask>();
  task->function = exec_template(spec.creation().SerializeAsString());
  task->id =
      make_task_id(static_cast<uint64_t>(request.epoch()), ActorId::from_binary(spec.actor_id()));
  task->parent = TaskId::from_binary(spec.parent_task_id());
  task->created_us = spec.created_us();
  task->args.resize(spec.args_size());
  std::vector<int> unknown;
  for (int i = 0; i < spec.args_size(); ++i) {
    const proto::TaskArg& arg = spec.args(i);
    if (arg.kind_case() == proto::TaskArg::kInlined) {
      Blob blob = copy_blob(as_bytes(arg.inlined()));
      auto decoded = decode_value(blob.bytes());
      if (!decoded || decoded->kind == ValueKind::kError) {
        task->failed = true;
        task->failure = arg.inlined();
        continue;
      }
      task->args[i] = argument(std::move(*decoded), blob.data);
      continue;
    }
    unknown.push_back(i);
  }
  line_.add(task, static_cast<int>(unknown.size()), false);
  // The owner of an argument by reference is asked where the value is.
  for (int i : unknown)
    ask_for_arg(task, i, ObjectId::from_binary(spec.args(i).object_id()), spec.args(i).owner());
}

}  // namespace rt::worker
