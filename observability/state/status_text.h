// The page of `rayctl status`, as pure functions of the head's answer.
#pragma once

#include <string>

#include "common/proto/head.pb.h"
#include "observability/api_json/node_json.h"

namespace rt::state {

std::string status_text(const proto::ClusterStatusReply& status, bool verbose);
// The usage of all living nodes together: "1.0/4.0 CPU, 0B/16.17GiB memory".
std::string usage_summary(const proto::ClusterStatusReply& status);
// The status as JSON, for --format=json and yaml.
api_json::Json status_json(const proto::ClusterStatusReply& status);

}  // namespace rt::state
