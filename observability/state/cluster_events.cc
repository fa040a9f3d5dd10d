#include "observability/state/cluster_events.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/ids.h"
#include "common/base/readable.h"
#include "observability/state/groups.h"

namespace rt::state {
namespace {

// Returns 36 hex digits that depend only on the kind of event (`what`) and on the node, job, actor
// or group to which it happened (`whom`).
std::string event_id(const std::string& what, const std::string& whom) {
  uint64_t first = 0xcbf29ce484222325ull, second = 0x9e3779b97f4a7c15ull;
  for (char c : what + "/" + whom) {
    first = (first ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    second = (second ^ (first >> 7)) * 0xff51afd7ed558ccdull;
  }
  return fmt::format("{:016x}{:016x}{:04x}", first, second, static_cast<uint16_t>(first ^ second));
}

ClusterEvent event(const char* severity, const char* source, const char* label,
                   const std::string& whom, int64_t time_ms, std::string message) {
  ClusterEvent out;
  out.severity = severity;
  out.source_type = source;
  out.label = label;
  out.message = std::move(message);
  out.event_id = event_id(label, whom);
  out.time_ms = time_ms;
  return out;
}

void add_node(const proto::Node& node, std::vector<ClusterEvent>* out) {
  const std::string id = to_hex(node.node_id());
  auto add = [&](ClusterEvent one) {
    one.hostname = node.hostname();
    one.pid = node.pid();
    one.custom_fields = {{"node_id", id}, {"ip", node.ip()}};
    out->push_back(std::move(one));
  };
  add(event("INFO", "GCS", "NODE_ADDED", id, node.start_time_ms(),
            fmt::format("node {} ({}) has joined", id, node.ip())));
  if (node.alive()) return;
  const bool expected = node.death_reason() != proto::NODE_DEATH_UNSPECIFIED &&
                        node.death_reason() != proto::UNEXPECTED_TERMINATION;
  add(event(expected ? "INFO" : "ERROR", "GCS", "NODE_REMOVED", id, node.end_time_ms(),
            fmt::format("node {} ({}) has gone: {}", id, node.ip(), node.death_message())));
}

void add_job(const proto::JobInfo& job, std::vector<ClusterEvent>* out) {
  const std::string id = to_hex(job.job_id());
  auto add = [&](ClusterEvent one) {
    one.job_id = id;
    one.pid = job.driver_pid();
    one.custom_fields = {{"job_id", id}, {"driver_ip", job.driver_ip()}};
    if (!job.config().submission_id().empty())
      one.custom_fields["submission_id"] = job.config().submission_id();
    out->push_back(std::move(one));
  };
  add(event("INFO", "JOBS", "JOB_STARTED", id, job.start_time_ms(),
            fmt::format("job {} has started: {}", id, job.config().entrypoint())));
  if (job.finished())
    add(event("INFO", "JOBS", "JOB_FINISHED", id, job.end_time_ms(),
              fmt::format("job {} has ended", id)));
}

void add_actor(const proto::ActorInfo& actor, std::vector<ClusterEvent>* out) {
  if (actor.state() != proto::ACTOR_DEAD) return;
  using proto::ExitInfo;
  auto kind = actor.death().kind();
  bool expected = kind == ExitInfo::OUT_OF_SCOPE || kind == ExitInfo::INTENTIONAL ||
                  kind == ExitInfo::JOB_FINISHED || kind == ExitInfo::KILLED_BY_USER ||
                  kind == ExitInfo::GROUP_REMOVED;
  const std::string id = to_hex(actor.spec().actor_id());
  ClusterEvent one =
      event(expected ? "INFO" : "ERROR", "GCS", "ACTOR_DIED", id, actor.end_time_ms(),
            fmt::format("actor {} ({}) has died: {}", actor.spec().class_name(), id,
                        actor.death().message()));
  one.job_id = to_hex(actor.spec().job_id());
  one.pid = actor.death().pid();
  one.custom_fields = {
      {"actor_id", id}, {"job_id", one.job_id}, {"class_name", actor.spec().class_name()}};
  out->push_back(std::move(one));
}

void add_group(const proto::GroupInfo& group, std::vector<ClusterEvent>* out) {
  const std::string id = to_hex(group.spec().group_id()), title = group_title(group);
  auto add = [&](ClusterEvent one) {
    one.job_id = to_hex(group.spec().job_id());
    one.custom_fields = {{"placement_group_id", id}, {"job_id", one.job_id}};
    out->push_back(std::move(one));
  };
  if (group.placed_us() > 0)
    add(event(
        "INFO", "GCS", "PLACEMENT_GROUP_CREATED", id, group.created_ms() + group.placed_us() / 1000,
        fmt::format("{} was placed: {} bundle{}, {}", title, group.spec().bundles_size(),
                    group.spec().bundles_size() == 1 ? "" : "s", strategy_name(group.spec()))));
  if (group.lost_ms() > 0)
    add(event("WARNING", "GCS", "PLACEMENT_GROUP_RESCHEDULING", id, group.lost_ms(),
              fmt::format("{} has lost {}", title, group.lost_why())));
  if (group.state() == proto::GROUP_REMOVED)
    add(event("INFO", "GCS", "PLACEMENT_GROUP_REMOVED", id, group.ended_ms(),
              fmt::format("{}: {}", title, removal_text(group))));
}

}  // namespace

std::vector<ClusterEvent> cluster_events(const std::vector<proto::Node>& nodes,
                                         const std::vector<proto::ActorInfo>& actors,
                                         const std::vector<proto::GroupInfo>& groups,
                                         const proto::GetJobsReply& jobs) {
  std::vector<ClusterEvent> events;
  for (const auto& node : nodes) add_node(node, &events);
  for (const auto& job : jobs.jobs()) add_job(job, &events);
  for (const auto& actor : actors) add_actor(actor, &events);
  for (const auto& group : groups) add_group(group, &events);
  std::stable_sort(events.begin(), events.end(), [](const ClusterEvent& a, const ClusterEvent& b) {
    return a.time_ms < b.time_ms;
  });
  return events;
}

Json cluster_event_row(const ClusterEvent& event) {
  return {{"severity", event.severity},       {"time", local_time(event.time_ms)},
          {"source_type", event.source_type}, {"message", event.message},
          {"event_id", event.event_id},       {"custom_fields", event.custom_fields}};
}

Json event_json(const ClusterEvent& event) {
  return {{"event_id", event.event_id},
          {"source_type", event.source_type},
          {"source_hostname", event.hostname},
          {"source_pid", event.pid},
          {"severity", event.severity},
          {"label", event.label},
          {"message", event.message},
          {"timestamp", event.time_ms / 1000},
          {"custom_fields", event.custom_fields}};
}

}  // namespace rt::state
