// Cluster events: nodes and jobs that came and went, actors that died, placement groups that were
// placed and removed. They are derived from the head's records of these, so a record that the head
// drops takes its events along.
#pragma once

#include <string>
#include <vector>

#include "common/proto/head.pb.h"
#include "observability/state/rows.h"

namespace rt::state {

struct ClusterEvent {
  // `event_id` is derived from the event, hence the same in every answer.
  std::string severity, source_type, label, message, event_id;
  std::string job_id;  // In hex; empty if the event belongs to no job.
  std::string hostname;
  int64_t time_ms = 0;
  int64_t pid = 0;
  Json custom_fields = Json::object();
};
// The events of these records, sorted by time.
std::vector<ClusterEvent> cluster_events(const std::vector<proto::Node>& nodes,
                                         const std::vector<proto::ActorInfo>& actors,
                                         const std::vector<proto::GroupInfo>& groups,
                                         const proto::GetJobsReply& jobs);

// The event as a row of the state API.
Json cluster_event_row(const ClusterEvent& event);
// The event as GET /events returns it, but with snake_case keys.
Json event_json(const ClusterEvent& event);

}  // namespace rt::state
