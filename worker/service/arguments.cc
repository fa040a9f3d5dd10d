// The arguments of tasks that lie in object stores: where a task should run because of them, and
// how a worker gets them.
#include "worker/service/arguments.h"

#include <fmt/core.h>

#include <utility>

#include "common/base/clock.h"
#include "worker/core/death.h"
#include "worker/core/locality.h"
#include "worker/core/value_codec.h"
#include "worker/service/execution.h"
#include "worker/service/objects.h"
#include "worker/service/task_queue.h"

namespace rt::worker {

namespace {

std::vector<const ObjectEntry*> stored_arguments(const Task& task) {
  std::vector<const ObjectEntry*> stored;
  for (const Task::Arg& arg : task.args) {
    if (!arg.ref) continue;
    const ObjectEntry& entry = entry_of(arg.ref);
    if (entry.state == ObjectState::kInStore) stored.push_back(&entry);
  }
  return stored;
}

}  // namespace

void prefer_arguments_node(Task& task, const NodeId& here, const store::StoreClient* store,
                           Submitter& submitter) {
  if (!store || !may_prefer_node(task)) return;
  std::vector<const ObjectEntry*> stored = stored_arguments(task);
  if (stored.empty()) return;
  auto preferred = preferred_node(std::move(stored), here, store->capacity());
  if (preferred) task.own_class = class_at(submitter, task, preferred->node, preferred->others_too);
}

bool move_to_arguments(Task* task, const Link& link, const NodeId& full, const NodeDirectory& nodes,
                       Notices& notices, Submitter& submitter) {
  if (!may_move_to_arguments(*task)) return false;
  // A node that is not known here may have joined a moment ago.
  auto may_run = [&](const NodeId& node) {
    assert_locked();
    const proto::Node* known = nodes.find(node);
    return node != full && (!known || ResourceSet::from_proto(known->total())
                                          .contains(task->function->scheduling_class->resources));
  };
  auto beside = node_beside(stored_arguments(*task), may_run);
  if (!beside) return false;
  task->own_class = class_at(submitter, *task, *beside, false);
  notices.attempt_failed([&] {
    return fmt::format(
        "The object store of node {} has no room for the arguments of task {}, so the task goes to "
        "node {}, which has most of them, if it can run there.",
        full.hex(), display_name(task->function->spec.function()), beside->hex());
  });
  submitter.retry(link.lease_key, task, Submitter::Cost::kNothing, steady_now());
  return true;
}

void TaskQueue::take_argument(IncomingTask& task, const IncomingTask::Fetch& arg,
                              Result<OwnedBytes> got) {
  if (!got && got.error().code == Code::kObjectStoreFull) task.found_no_room = true;
  Result<DecodedValue> decoded = got ? decode_value(got->bytes) : Result<DecodedValue>(got.error());
  if (!decoded) {
    task.failed = true;
    auto error = system_error(
        decoded.error().code == Code::kUnavailable ? Code::kObjectLost : decoded.error().code,
        fmt::format("Argument object {} cannot be read: {}", arg.id.hex(),
                    decoded.error().message));
    error.set_object_id(arg.id.binary());
    task.failure = encode_error(error);
    return;
  }
  Value& value = task.args[arg.index];
  value = argument(std::move(*decoded), got->keepalive);
  value.in_shared_memory = true;
  if (value.kind == ValueKind::kError) {
    task.failed = true;
    task.failure = std::string(as_view(got->bytes));
  }
}

void TaskQueue::announce_fetched(const std::vector<IncomingTask::Fetch>& args,
                                 const std::vector<Result<OwnedBytes>>& got) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (!got[i] || !objects_.store()->take_untold(args[i].id)) continue;
    if (args[i].owner.worker_id() == context_.worker_id.view()) {
      objects_.store()->owner_knows(args[i].id);
    } else {
      objects_.copies().announce(args[i].id, args[i].owner, got[i]->keepalive);
    }
  }
}

bool TaskQueue::has_store(IncomingTask& task) {
  if (objects_.store()) return true;
  task.failed = true;
  task.failure = encode_error(system_error(
      Code::kObjectLost, "an argument is in shared memory, but this node runs no object store"));
  return false;
}

void TaskQueue::fetch_arguments(const std::shared_ptr<LineTask>& waiting) {
  auto task = std::static_pointer_cast<IncomingTask>(waiting);
  auto args =
      std::make_shared<const std::vector<IncomingTask::Fetch>>(std::exchange(task->to_fetch, {}));
  task->fetch = args;
  std::vector<store::StoreClient::Wanted> wanted;
  for (const IncomingTask::Fetch& arg : *args) wanted.push_back({arg.id, arg.locations});
  // A task that is given back gives its place in the store's line up, so the callback must not
  // keep it.
  auto asked = objects_.store()->get_arguments(
      std::move(wanted), options_.settings.object_fetch_timeout_ms * 1000,
      [this, args, waits = std::weak_ptr<IncomingTask>(task)](std::vector<Result<OwnedBytes>> got) {
        assert_locked();
        announce_fetched(*args, got);
        auto task = waits.lock();
        if (!task || task->fetch != args) return;
        for (size_t i = 0; i < args->size(); ++i)
          take_argument(*task, (*args)[i], std::move(got[i]));
        line_.arguments_fetched(*task);
      });
  task->holds_arguments = std::move(asked.holds);
  task->fetch_ticket = asked.ticket;
}

void TaskQueue::give_up_arguments(LineTask& waiting) {
  auto& task = static_cast<IncomingTask&>(waiting);
  task.holds_arguments.reset();
  for (const IncomingTask::Fetch& arg : *task.fetch) task.args[arg.index] = Value();
  task.to_fetch = *std::exchange(task.fetch, nullptr);
}

void TaskQueue::ask_for_arg(const std::shared_ptr<IncomingTask>& task, size_t index,
                            const ObjectId& id, const proto::WorkerAddress& owner_address) {
  auto owner = std::make_shared<proto::WorkerAddress>(owner_address);
  ObjectEntry* entry = objects_.refs().borrow(id, owner, false);
  // This process owns the object and has freed it: whoever sent the task held no reference.
  if (!entry) {
    task->failed = true;
    task->failure = encode_error(
        system_error(Code::kObjectLost, fmt::format("Argument object {} was freed", id.hex())));
    return line_.argument_placed(task, false);
  }
  auto with_value = [this, task, index, hold = Ref(entry), owner] {
    assert_locked();
    auto& entry = entry_of(hold);
    if (entry.state == ObjectState::kInMemory) {
      auto value = objects_.decode(entry, entry.blob.bytes(), entry.blob.data, false);
      if (!value || value->kind == ValueKind::kError) {
        task->failed = true;
        task->failure = std::string(as_view(entry.blob.bytes()));
      } else {
        task->args[index] = std::move(*value);
      }
      return line_.argument_placed(task, false);
    }
    if (!has_store(*task)) return line_.argument_placed(task, false);
    std::vector<store::Location> locations;
    for (const auto& l : entry.details().locations)
      locations.push_back({l.node, l.ip, l.port, entry.size});
    task->to_fetch.push_back({index, entry.id, std::move(locations), *owner});
    line_.argument_placed(task, true);
  };
  if (entry->ready) {
    with_value();
  } else {
    entry->mutable_details().waiters.push_back(with_value);
    objects_.resolve(*entry);
  }
}

}  // namespace rt::worker
