#include "worker/core/group_demand.h"

#include <algorithm>
#include <utility>

namespace rt::worker {

GroupDemand::GroupDemand(const GroupId& group, int bundle_index)
    : group_(group), bundle_(bundle_index) {}

GroupDemand::~GroupDemand() = default;

bool GroupDemand::move_to(std::vector<GroupTarget> targets, bool removed) {
  targets_ = std::move(targets);
  return set_removed(removed);
}

std::vector<GroupDemand::Level> GroupDemand::levels(int needed, int64_t backlog) {
  std::vector<Level> out;
  std::map<NodeId, Sent> next;
  // The room of the bundles bounds the level, but not the number of tasks that wait for it.
  const bool tell =
      backlog != told_backlog_ && (backlog >= 2 * told_backlog_ || 2 * backlog <= told_backlog_);
  for (const GroupTarget& target : targets_) {
    auto before = sent_.find(target.node);
    const Sent told = before == sent_.end() ? Sent() : before->second;
    int want = std::min(needed, target.most);
    // A small decrease under load is not worth a message: grants beyond the need are returned.
    if (want > 0 && want < told.want && told.want - want < told.want / 4) want = told.want;
    const bool first = &target == &targets_.front();
    if (want != told.want || (want > 0 && (target.epoch != told.epoch || (first && tell)))) {
      out.push_back({target.node, want, first && want > 0 ? backlog : 0});
      if (first) told_backlog_ = out.back().backlog;
    }
    if (want > 0) next[target.node] = {want, target.epoch};
    if (before != sent_.end()) sent_.erase(before);
  }
  for (const auto& [node, told] : sent_) out.push_back({node, 0});
  sent_ = std::move(next);
  return out;
}

int64_t GroupDemand::epoch_at(const NodeId& node) const {
  auto target = std::find_if(targets_.begin(), targets_.end(),
                             [&](const GroupTarget& t) { return t.node == node; });
  return target == targets_.end() ? 0 : target->epoch;
}

void GroupDemand::granted(const NodeId& node) {
  auto told = sent_.find(node);
  if (told != sent_.end() && --told->second.want <= 0) sent_.erase(told);
}

bool GroupDemand::forget(const NodeId& node) { return sent_.erase(node) > 0; }

void GroupDemand::clear() { sent_.clear(); }

}  // namespace rt::worker
