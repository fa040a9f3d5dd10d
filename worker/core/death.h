// Errors that the system, not user code, gives to tasks, made from how a process ended.
#pragma once

#include "common/base/status.h"
#include "common/proto/common.pb.h"
#include "worker/core/task.h"
#include "worker/core/value_codec.h"

namespace rt::proto {
class WorkerExitReply;
}

namespace rt::worker {

// The value of proto::ErrorValue.code for an exception that user code raised.
inline constexpr int kTaskRaised = 100;

// The name that users see: "f" or "Class.method". For a nested function it is the last part of its
// qualified name.
std::string display_name(const proto::FunctionDescriptor& function);
// The task's name= option, or display_name() for a template that has only its default name
// ("module.f" for a function, "method" for a method).
std::string task_name(const proto::TaskTemplate& spec);

// The error of a task that does not run because an argument is an error. An exception of user code
// stays the cause; an error of the system is wrapped, so that `cause` holds its encoded value. The
// text names the task that was to receive the argument.
struct Receiver {
  const proto::FunctionDescriptor& function;
  TaskId task;
  std::string actor_id;  // Binary; empty for plain tasks.
  int pid = 0;
  std::string ip;
};
proto::ErrorValue dependency_error(const proto::ErrorValue& cause, const Receiver& at);
// The same from and to encoded values. Returns `encoded` itself when it cannot be decoded.
std::string encoded_dependency_error(Bytes encoded, const Receiver& at);

// The state API's name for what ended a task, such as TASK_EXECUTION_EXCEPTION for an exception of
// user code.
std::string_view error_type_name(const proto::ErrorValue& error);

// How the process ended, as far as its node-manager was able to say. With one that does not answer,
// its node counts as dead; a nil `node` is the one of this process.
proto::ExitInfo exit_as_told(const Result<proto::WorkerExitReply>& answer,
                             const proto::WorkerAddress& process, const NodeId& node);
// Says how the process ended: a clause with its full stop, then the last lines of its log.
std::string describe_exit(const proto::ExitInfo& info);
// The text of any error as users read it; one of user code has its header line and frames.
std::string error_text(const proto::ErrorValue& error);
// Tells users that the attempt failed with `error` and that another one follows.
std::string retry_text(const Task& task, const proto::ErrorValue& error);
// For a task that ray.cancel ended before it ran, or by force.
proto::ErrorValue cancelled_error(const Task& task);
// For a task that does not run because its placement group was removed.
proto::ErrorValue group_removed_error(const Task& task);
proto::ErrorValue worker_death_error(const Task& task, const proto::ExitInfo& info);
proto::ErrorValue actor_death_error(const Task* task, const ActorId& actor,
                                    const proto::ActorInfo* info, const proto::ExitInfo& exit);
proto::ErrorValue system_error(Code code, const std::string& message, const Task& task);
proto::ErrorValue system_error(Code code, const std::string& message);

// An error travels inside messages, whose size is limited: of one that is larger than
// kMaxErrorBytes, the exception of the user is left out, and the texts are shortened and say so.
inline constexpr size_t kMaxErrorBytes = 64 << 20;
proto::ErrorValue without_excess(proto::ErrorValue error);

}  // namespace rt::worker
