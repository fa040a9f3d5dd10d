#include "observability/api_json/metrics_targets.h"

#include <cstdlib>

#include <nlohmann/json.hpp>

#include "common/base/json_text.h"
#include "observability/api_json/object.h"

namespace rt::api_json {

int metrics_port(const proto::Node& node) {
  auto label = node.labels().find(kMetricsPortLabel);
  return label == node.labels().end() ? 0 : std::atoi(label->second.c_str());
}

std::string metrics_targets(const std::vector<proto::Node>& nodes,
                            const std::string& head_http_address, bool https) {
  Json targets = Json::array();
  for (const auto& node : nodes) {
    if (!node.alive() || metrics_port(node) == 0) continue;
    bool bracketed = node.ip().find(':') != std::string::npos;
    targets.push_back((bracketed ? "[" + node.ip() + "]:" : node.ip() + ":") +
                      std::to_string(metrics_port(node)));
  }
  if (!head_http_address.empty()) targets.push_back(head_http_address);
  Json group = {{"labels", {{"job", "ray"}}}};
  if (https) group["labels"]["__scheme__"] = "https";
  group["targets"] = std::move(targets);
  Json groups = Json::array();
  groups.push_back(std::move(group));
  return json_text(groups);
}

}  // namespace rt::api_json
