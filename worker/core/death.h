// Errors that the system, not user code, gives to tasks: built from how a process ended.
#pragma once

#include "common/base/status.h"
#include "common/proto/common.pb.h"
#include "worker/core/task.h"
#include "worker/core/value_codec.h"

namespace rt::worker {

inline constexpr int kTaskRaised = 100;  // proto::ErrorValue.code of an exception from user code

// The name people know: "f", or "Class.method". A nested function's qualified name ends in it.
std::string display_name(const proto::FunctionDescriptor& function);
// The name= option, or the same. What a template is called without one is "module.f", or "method".
std::string task_name(const proto::TaskTemplate& spec);

// The error of a task that does not run because of an argument's error. What user code raised stays
// the cause, and an error of the system becomes it (`cause` is then its encoded value); the text
// says whose argument it was.
struct Receiver {
  const proto::FunctionDescriptor& function;
  TaskId task;
  std::string actor_id;  // binary; empty for plain tasks
  int pid = 0;
  std::string ip;
};
proto::ErrorValue dependency_error(const proto::ErrorValue& cause, const Receiver& at);
// The same for an encoded value.
std::string encoded_dependency_error(Bytes encoded, const Receiver& at);

// The state API's name for what ended a task: TASK_EXECUTION_EXCEPTION for what user code raised.
std::string_view error_type_name(const proto::ErrorValue& error);

// A clause with its full stop, then the last lines of the log.
std::string describe_exit(const proto::ExitInfo& info);
// What people read of an error of any kind: of user code with its header line and frames.
std::string error_text(const proto::ErrorValue& error);
// ray.cancel before the task ran, or by force.
proto::ErrorValue cancelled_error(const Task& task);
proto::ErrorValue worker_death_error(const Task& task, const proto::ExitInfo& info);
proto::ErrorValue actor_death_error(const Task* task, const ActorId& actor,
                                    const proto::ActorInfo* info, const proto::ExitInfo& exit);
proto::ErrorValue system_error(Code code, const std::string& message, const Task& task);
proto::ErrorValue system_error(Code code, const std::string& message);

}  // namespace rt::worker
