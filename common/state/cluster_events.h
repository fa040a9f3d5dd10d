// What has happened in a cluster, told from what the head still knows: nodes and jobs that came and
// went, actors that died. Nothing is recorded for it, so a record that was dropped takes its events
// along.
#pragma once

#include <string>
#include <vector>

#include "common/proto/head.pb.h"
#include "common/state/rows.h"

namespace rt::state {

struct ClusterEvent {
  std::string severity, source_type, label, message,
      event_id;        // event_id: the same in every answer
  std::string job_id;  // hex; empty: of no job
  std::string hostname;
  int64_t time_ms = 0;
  int64_t pid = 0;
  Json custom_fields = Json::object();
};
// By time.
std::vector<ClusterEvent> cluster_events(const std::vector<proto::Node>& nodes,
                                         const std::vector<proto::ActorInfo>& actors,
                                         const proto::GetJobsReply& jobs);

// A row of the state API.
Json cluster_event_row(const ClusterEvent& event);
// As GET /events has it, with snake_case keys.
Json event_json(const ClusterEvent& event);

}  // namespace rt::state
