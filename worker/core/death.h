// Errors that the system, not user code, gives to tasks: built from how a process ended.
#pragma once

#include "common/base/status.h"
#include "common/proto/common.pb.h"
#include "worker/core/task.h"

namespace rt::worker {

inline constexpr int kTaskRaised = 100;   // proto::ErrorValue.code of an exception from user code

std::string describe_exit(const proto::ExitInfo& info);
// ray.cancel before the task ran, or by force.
proto::ErrorValue cancelled_error(const Task& task);
proto::ErrorValue worker_death_error(const Task& task, const proto::ExitInfo& info);
proto::ErrorValue actor_death_error(const Task* task, const ActorId& actor, const proto::ActorInfo* info, const proto::ExitInfo& exit);
proto::ErrorValue system_error(Code code, const std::string& message, const Task& task);
proto::ErrorValue system_error(Code code, const std::string& message);

}  // namespace rt::worker
