// Takes stacks and profiles of processes of a cluster, which users name by id, name or role.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observability/profile/render.h"
#include "observability/state/query.h"

namespace rt::state {

struct ProfileQuery {
  // A process id; the id of a worker, actor, running task or job; a submission id; the name or
  // class of an actor; "head", "node-manager" or "object-store"; or "all" for all workers and
  // drivers.
  std::string target = "all";
  std::string node;    // The id or address of a node: only its processes.
  bool native = true;  // Whether native frames are wanted, too.
  // The profile to take; without one, one look at the stacks. Its `native` is ignored.
  std::optional<proto::ProfileRequest> profile;
  int64_t timeout_us = 30'000'000;  // In addition to the duration of the profile.
};

struct ProfileAnswer {
  profile::AllSamples all;
  // The processes without an answer: "process 42 on 10.0.0.1: why".
  std::vector<std::string> missing;
};

// Blocks for the duration of the profile. Returns kNotFound if nothing of that name runs, and
// kUnavailable if no process answered.
Result<ProfileAnswer> profile_processes(const Cluster& cluster, const ProfileQuery& query);

struct TaskPlace {
  int pid = 0;
  std::string node_id;    // In hex.
  int running_there = 0;  // The number of tasks that the process is running, this one included.
};
// Finds the process that runs an attempt of a task. Returns kNotFound if none does.
Result<TaskPlace> find_running_task(const Cluster& cluster, const std::string& task_id,
                                    int64_t attempt, int64_t timeout_us);

}  // namespace rt::state
