// Converts proto::Node to the JSON of the public API: the entries of ray.nodes() and the resource
// dicts, with Ray's keys, order and values. Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"
#include "observability/api_json/object.h"

namespace rt::api_json {

// One entry of ray.nodes(). Ports that this release does not have are 0; a dead node has no
// resources.
Json node_json(const proto::Node& node);
// Parts of an entry: the resources; the labels, to which the node's id (`node_id`, in hex) is
// added; and the name, which is the ip address if the node was given none.
Json node_resources_json(const proto::Node& node);
Json node_labels_json(const proto::Node& node, const std::string& node_id);
const std::string& node_name(const proto::Node& node);

// Returns the list that ray.nodes() answers with. `nodes` is any sequence of proto::Node.
template <class Nodes>
Json nodes_json(const Nodes& nodes) {
  Json json = Json::array();
  for (const proto::Node& node : nodes) json.push_back(node_json(node));
  return json;
}

// Amounts by name of resource, such as {"CPU": 2.0}.
Json amounts_json(const ResourceSet& resources);
Json amounts_json(const proto::Resources& resources);

enum class Amount { kTotal, kAvailable };
// The sums over living nodes by name of resource, as ray.cluster_resources() or
// ray.available_resources() return them. Resources of which nothing is left are absent.
template <class Nodes>
Json resources_json(const Nodes& nodes, Amount amount) {
  ResourceSet sum;
  for (const proto::Node& node : nodes) {
    if (node.alive())
      sum.add(ResourceSet::from_proto(amount == Amount::kTotal ? node.total() : node.available()));
  }
  return amounts_json(sum);
}

}  // namespace rt::api_json
