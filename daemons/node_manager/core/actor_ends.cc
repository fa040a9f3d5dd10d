#include "daemons/node_manager/core/actor_ends.h"

#include <algorithm>

namespace rt::node {

std::optional<ActorId> ActorEnds::of(const WorkerId& worker) const {
  auto it = dying_.find(worker);
  return it == dying_.end() ? std::nullopt : std::optional(it->second);
}

void ActorEnds::forget(const WorkerId& worker) { dying_.erase(worker); }

void ActorEnds::record(const ActorId& actor, int64_t epoch, const proto::ExitInfo& info) {
  if (const End* known = find(actor)) {
    if (known->epoch > epoch) return;
    bytes_ -= known->info.creation_error().size();
    std::erase(order_, actor);
  }
  ends_[actor] = {epoch, info};
  order_.push_back(actor);
  bytes_ += info.creation_error().size();
  while (order_.size() > kMaxEnds || (bytes_ > kMaxBytes && order_.size() > 1)) {
    auto oldest = ends_.extract(order_.front());
    bytes_ -= oldest.mapped().info.creation_error().size();
    order_.pop_front();
  }
}

const ActorEnds::End* ActorEnds::find(const ActorId& actor) const {
  auto it = ends_.find(actor);
  return it == ends_.end() ? nullptr : &it->second;
}

}  // namespace rt::node
