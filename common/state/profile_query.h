// Stacks and profiles of processes of a cluster, found by what people call them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/profile/render.h"
#include "common/state/query.h"

namespace rt::state {

struct ProfileQuery {
  // A process id, a worker's, actor's, task's or job's id, an actor's name or class, a submission
  // id, "head", "node-manager", "object-store"; "all": workers and drivers.
  std::string target = "all";
  std::string node;  // id or address: of this node only
  bool native = true;
  std::optional<proto::ProfileRequest> profile;  // else one look; its `native` is taken from above
  int64_t timeout_us = 30'000'000;               // beyond the profile's duration
};

struct ProfileAnswer {
  profile::AllSamples all;
  std::vector<std::string> missing;  // "process 42 on 10.0.0.1: why"
};

// kNotFound: nothing of that name runs. kUnavailable: found, but nothing answered.
Result<ProfileAnswer> profile_processes(const Cluster& cluster, const ProfileQuery& query);

// Where the running attempt of a task is. kNotFound: nowhere.
struct TaskPlace {
  int pid = 0;
  std::string node_id;    // hex
  int running_there = 0;  // tasks of its process, this one included
};
Result<TaskPlace> find_running_task(const Cluster& cluster, const std::string& task_id,
                                    int64_t attempt, int64_t timeout_us);

}  // namespace rt::state
