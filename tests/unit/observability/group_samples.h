// Samples of placement groups that several tests share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/head.pb.h"
#include "common/resources/resource_set.h"

namespace rt {

inline proto::Resources amounts(const std::map<std::string, double>& amounts) {
  proto::Resources out;
  ResourceSet::from_map(amounts)->to_proto(&out);
  return out;
}

// A group of job 1 whose id consists of `id`, and that waits for nodes.
inline proto::GroupInfo group_of(char id, const std::vector<std::map<std::string, double>>& bundles,
                                 proto::GroupSpec::Strategy strategy = proto::GroupSpec::PACK) {
  proto::GroupInfo group;
  group.mutable_spec()->set_group_id(std::string(GroupId::kSize, id));
  group.mutable_spec()->set_job_id(job_id_from_int(1).binary());
  group.mutable_spec()->set_strategy(strategy);
  for (const auto& bundle : bundles)
    *group.mutable_spec()->add_bundles()->mutable_resources() = amounts(bundle);
  group.set_created_ms(1'700'000'000'000);
  return group;
}

// Places the bundles on the nodes whose ids consist of these letters; '-' stands for none.
inline void place(proto::GroupInfo* group, const std::string& nodes,
                  proto::GroupState state = proto::GROUP_CREATED) {
  group->set_state(state);
  for (char node : nodes)
    group->add_bundle_nodes(node == '-' ? "" : std::string(NodeId::kSize, node));
}

inline proto::Node living_node(char id, const std::map<std::string, double>& total,
                               const std::map<std::string, double>& available) {
  proto::Node node;
  node.set_node_id(std::string(NodeId::kSize, id));
  node.set_ip(std::string("10.0.0.") + id);
  node.set_alive(true);
  *node.mutable_total() = amounts(total);
  *node.mutable_available() = amounts(available);
  return node;
}

}  // namespace rt
