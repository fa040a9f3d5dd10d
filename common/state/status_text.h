// The page `status` prints, as a pure function of the head's answer.
#pragma once

#include <string>

#include "common/api_json/node_json.h"
#include "common/proto/head.pb.h"

namespace rt::state {

std::string status_text(const proto::ClusterStatusReply& status, bool verbose);
// "1.0/4.0 CPU, 0B/16.17GiB memory" of the living nodes together.
std::string usage_summary(const proto::ClusterStatusReply& status);
api_json::Json status_json(const proto::ClusterStatusReply& status);

}  // namespace rt::state
