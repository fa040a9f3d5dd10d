#include "tests/sim/owner_arguments.h"

#include "tests/sim/sim_node.h"

namespace rt::sim {
std::vector<const worker::ObjectEntry*> OwnerArguments::entries(const TaskPlan& plan) {
  std::vector<const worker::ObjectEntry*> out;
  for (const StoredValue& value : plan.arguments) {
    auto& entry = known_[value.id];
    if (!entry) {
      entry = std::make_unique<worker::ObjectEntry>();
      entry->id = value.id;
      entry->state = worker::ObjectState::kInStore;
      entry->size = value.size;
      entry->mutable_details().locations.push_back({value.home, "", 0});
    }
    out.push_back(entry.get());
  }
  return out;
}

void OwnerArguments::prefer(worker::Task& task, const TaskPlan& plan,
                            worker::Submitter& submitter) {
  if (store_bytes_ == 0 || plan.arguments.empty() || !worker::may_prefer_node(task)) return;
  const auto preferred = worker::preferred_node(entries(plan), here_, store_bytes_);
  if (preferred)
    task.own_class = worker::class_at(submitter, task, preferred->node, preferred->others_too);
}

bool OwnerArguments::move(worker::Task* task, const TaskPlan& plan, uint64_t lease_key,
                          worker::Submitter& submitter) {
  if (!worker::may_move_to_arguments(*task)) return false;
  const NodeId full = NodeId::from_binary(submitter.find_lease(lease_key)->worker.node_id());
  auto may_run = [&](const NodeId& node) {
    const auto known = world_.nodes.find(node);
    return node != full && known != world_.nodes.end() &&
           known->second->total().contains(task->function->scheduling_class->resources);
  };
  const auto beside = worker::node_beside(entries(plan), may_run);
  if (!beside) return false;
  task->own_class = worker::class_at(submitter, *task, *beside, false);
  world_.ledger.refused_room(task->id, full);
  submitter.retry(lease_key, task, worker::Submitter::Cost::kNothing, world_.clock.now());
  return true;
}

}  // namespace rt::sim
