#include "tests/sim/node_news.h"

#include "tests/sim/sim_owner.h"

namespace rt::sim {

void NodeNews::nodes_changed(const google::protobuf::RepeatedPtrField<proto::Node>& nodes) {
  events_.drive([&](node::NodeCore& core, Now now) {
    for (const proto::Node& node : nodes) core.node_changed(node);
    core.nodes_settled(now);
  });
}

void NodeNews::head_lost() {
  events_.drive([](node::NodeCore& core, Now now) { core.head_lost(now); });
}

void NodeNews::job_finished(JobId job) {
  events_.drive([&](node::NodeCore& core, Now now) { core.job_finished(job, now); });
}

void NodeNews::job_over(JobId job) {
  events_.drive([&](node::NodeCore& core, Now now) { core.job_over(job, now); });
}

// The model's processes have no references to what workers elsewhere own, so that they need not
// hear of dead ones.
void NodeNews::tell_processes(const proto::HeadEvent& news) {
  if (news.nodes_size() == 0) return;
  sessions_.tell_drivers("nodes", [news](Channel& at) { owner_at(at).on_head_event(news); });
}

}  // namespace rt::sim
