#include "daemons/object_store/core/gone_owners.h"

namespace rt::store {

GoneOwners::GoneOwners(size_t max_entries) : max_entries_(max_entries) {}

GoneOwners::~GoneOwners() = default;

void GoneOwners::add(const WorkerId& owner, int64_t until_us) {
  if (!owner.is_nil() && workers_.insert(owner).second) add({until_us, owner, 0});
}

void GoneOwners::add(const NodeId& node, int64_t until_us) {
  if (nodes_.insert(node_mark(node)).second) add({until_us, WorkerId(), node_mark(node)});
}

void GoneOwners::add(const Entry& entry) {
  order_.push_back(entry);
  if (order_.size() > max_entries_) forget_first();
}

void GoneOwners::forget(int64_t forget_us) {
  while (!order_.empty() && order_.front().until_us <= forget_us) forget_first();
}

void GoneOwners::forget_first() {
  const Entry& first = order_.front();
  if (first.worker.is_nil()) {
    nodes_.erase(first.node);
  } else {
    workers_.erase(first.worker);
  }
  order_.pop_front();
}

}  // namespace rt::store
