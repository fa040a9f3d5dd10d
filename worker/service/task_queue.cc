#include "worker/service/task_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "worker/core/death.h"
#include "worker/service/execution.h"
#include "worker/service/groups.h"
#include "worker/service/objects.h"

namespace rt::worker {

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
    auto kind = reader.number<uint8_t>();
    if (kind == 0) {
      inlined[i] = reader.take(reader.number<uint32_t>());
      if (inlined[i].size() < kValueHeader) return false;
      total += (inlined[i].size() + 7) & ~size_t{7};
      continue;
    }
    if (kind != 1 && kind != 2) return false;
    const bool in_store = kind == 1;
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
  task.unready = static_cast<int>(task.to_fetch.size() + unknown->size());
  return true;
}

void return_unstarted(const IncomingTask& task, std::string_view why) {
  wire::Writer writer(task.link->connection->begin_flat(wire::kReplies));
  writer.number(task.seq);
  writer.number(wire::TaskStatus::kNotStarted);
  writer.number(uint32_t{0});
  writer.number(static_cast<uint32_t>(why.empty() ? 0 : 1));
  if (!why.empty()) {
    writer.number(uint8_t{0});
    writer.number(static_cast<uint32_t>(why.size()));
    writer.bytes(why);
  }
  task.link->connection->end_flat();
}

void TaskQueue::on_tasks(const std::shared_ptr<Link>& link, Bytes body) {
  const std::optional<std::string>& left = execution_.departure().left_because();
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
    for (const auto& arg : unknown) ask_for_arg(task, arg.index, arg.id, arg.owner);
    if (!left) fetch_args(task);
    tasks_.push_back(std::move(task));
  }
  if (left) execution_.refuse_waiting_calls(*left);
}

void TaskQueue::on_take_back(const std::shared_ptr<Link>& link, Bytes body) {
  wire::Reader reader(body);
  give_back(link.get(), reader.number<uint32_t>());
}

void TaskQueue::give_back(Link* only, size_t limit) {
  if (execution_.actor()) return;
  for (size_t i = tasks_.size(); i-- > 0 && limit > 0;) {
    const auto& task = tasks_[i];
    if (!task->link || (only && task->link.get() != only)) continue;
    return_unstarted(*task);
    tasks_.erase(tasks_.begin() + static_cast<ptrdiff_t>(i));
    --limit;
  }
  loop_.flush_all();
}

namespace {

// Returns the task that runs next, or the end when none can run yet. `in_order`: a caller's tasks
// do not overtake each other.
auto first_ready(std::deque<std::shared_ptr<IncomingTask>>& tasks, bool in_order) {
  std::vector<const Link*> held_up;  // callers with a task that is not ready
  for (auto it = tasks.begin(); it != tasks.end(); ++it) {
    const Link* caller = (*it)->link.get();
    if (std::find(held_up.begin(), held_up.end(), caller) != held_up.end()) continue;
    if ((*it)->unready == 0) return it;
    if (in_order) held_up.push_back(caller);
  }
  return tasks.end();
}

}  // namespace

bool TaskQueue::any_ready() {
  return first_ready(tasks_, execution_.is_plain_actor()) != tasks_.end();
}

std::shared_ptr<IncomingTask> TaskQueue::next() {
  auto ready = first_ready(tasks_, execution_.is_plain_actor());
  if (ready == tasks_.end()) return nullptr;
  auto task = std::move(*ready);
  tasks_.erase(ready);
  return task;
}

bool TaskQueue::cancel(const std::shared_ptr<Link>& link, uint32_t seq) {
  auto waiting = std::find_if(tasks_.begin(), tasks_.end(),
                              [&](const auto& t) { return t->link == link && t->seq == seq; });
  if (waiting == tasks_.end()) return false;
  return_unstarted(**waiting);
  tasks_.erase(waiting);
  link->connection->flush();
  return true;
}

void TaskQueue::refuse(std::string_view error) {
  for (const auto& task : std::exchange(tasks_, {})) {
    if (task->link && task->link->open) return_unstarted(*task, error);
  }
}

void TaskQueue::link_closed(const std::shared_ptr<Link>& link) {
  std::erase_if(tasks_, [&](const auto& task) { return task->link == link; });
}

void TaskQueue::add_creation(const proto::CreateActorRequest& request) {
  const proto::ActorSpec& spec = request.spec();
  auto task = std::make_shared<IncomingTask>();
  task->function = exec_template(spec.creation().SerializeAsString());
  task->id =
      make_task_id(static_cast<uint64_t>(request.epoch()), ActorId::from_binary(spec.actor_id()));
  task->parent = TaskId::from_binary(spec.parent_task_id());
  task->created_us = spec.created_us();
  task->args.resize(spec.args_size());
  for (const proto::TaskArg& arg : spec.args())
    task->unready += arg.kind_case() == proto::TaskArg::kInlined ? 0 : 1;
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
    // The owner of an argument by reference is asked where the value is.
    ask_for_arg(task, i, ObjectId::from_binary(arg.object_id()), arg.owner());
  }
  tasks_.push_back(std::move(task));
}

}  // namespace rt::worker
