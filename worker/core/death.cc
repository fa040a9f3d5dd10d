#include "worker/core/death.h"

#include <fmt/core.h>
#include <string.h>

#include "common/base/readable.h"
#include "common/proto/node_manager.pb.h"

namespace rt::worker {

namespace {

const std::string kDependencyFailed =
    "  At least one of the input arguments for this task could not be computed:\n";
// Bounds the text that grows along a chain of tasks which all failed by the first one's error.
constexpr size_t kMaxDependencyText = 64 * 1024;

// The text that str() of the exception shows; ray/_private/errors.py writes the same first line.
std::string shown(const proto::ErrorValue& error) {
  std::string title =
      error.proctitle().empty() ? "ray::" + error.function_name() : error.proctitle();
  std::string where = fmt::format("pid={}, ip={}", error.pid(), error.ip());
  if (!error.actor_id().empty())
    where += ", actor_id=" + ActorId::from_binary(error.actor_id()).hex();
  if (!error.actor_repr().empty()) where += ", repr=" + error.actor_repr();
  return fmt::format("\x1b[36m{}()\x1b[39m ({})\n{}", title, where, error.traceback());
}

// Whether the error is that of a task or actor that was not started because its placement group was
// removed. One that ran is a process that died.
bool lost_its_group(const proto::ErrorValue& error) {
  return error.exit().kind() == proto::ExitInfo::GROUP_REMOVED && error.exit().pid() == 0 &&
         (error.code() == static_cast<int>(Code::kActorDied) ||
          error.code() == static_cast<int>(Code::kUnschedulable));
}

// The public exception class for an error of the system; ray/_private/errors.py constructs it.
const char* exception_name(const proto::ErrorValue& error) {
  if (lost_its_group(error))
    return error.code() == static_cast<int>(Code::kActorDied) ? "ActorUnschedulableError"
                                                              : "TaskPlacementGroupRemoved";
  switch (static_cast<Code>(error.code())) {
    case Code::kObjectStoreFull: return "ObjectStoreFullError";
    case Code::kOutOfDisk: return "OutOfDiskError";
    case Code::kObjectLost: return "ObjectLostError";
    case Code::kOwnerDied: return "OwnerDiedError";
    case Code::kWorkerCrashed: return "WorkerCrashedError";
    case Code::kNodeDied: return "NodeDiedError";
    case Code::kActorDied: return "ActorDiedError";
    case Code::kActorUnavailable: return "ActorUnavailableError";
    case Code::kCancelled: return "TaskCancelledError";
    case Code::kOutOfMemory: return "OutOfMemoryError";
    case Code::kUnschedulable: return "TaskUnschedulableError";
    case Code::kLocalNodeDied: return "LocalRayletDiedError";
    case Code::kRuntimeEnvSetup: return "RuntimeEnvSetupError";
    default: return "RaySystemError";
  }
}

// Wraps an error of the system as the cause of another error. Readers restore it from its encoded
// form.
proto::ErrorValue as_cause(const proto::ErrorValue& error) {
  proto::ErrorValue wrapped;
  wrapped.set_code(kTaskRaised);
  wrapped.set_message(error.message());
  wrapped.set_cause_class(std::string("ray.exceptions.") + exception_name(error));
  wrapped.set_cause(encode_error(error));
  if (error.has_exit()) *wrapped.mutable_exit() = error.exit();
  return wrapped;
}

}  // namespace

std::string error_text(const proto::ErrorValue& error) {
  return error.code() == kTaskRaised ? shown(error) : error.message();
}

std::string display_name(const proto::FunctionDescriptor& function) {
  if (!function.class_name().empty()) return function.class_name() + "." + function.name();
  size_t dot = function.name().rfind('.');
  return dot == std::string::npos ? function.name() : function.name().substr(dot + 1);
}

std::string task_name(const proto::TaskTemplate& spec) {
  const auto& function = spec.function();
  // A script's functions have the module __main__ in the script and the script's name everywhere
  // else.
  bool unnamed = function.class_name().empty()
                     ? spec.name() == function.module() + "." + function.name() ||
                           spec.name() == "__main__." + function.name()
                     : spec.name() == function.name();
  return unnamed || spec.name().empty() ? display_name(function) : spec.name();
}

proto::ErrorValue dependency_error(const proto::ErrorValue& cause, const Receiver& at) {
  if (cause.traceback().size() > kMaxDependencyText) return cause;
  bool raised = cause.code() == kTaskRaised;
  proto::ErrorValue error = raised ? cause : as_cause(cause);
  error.set_function_name(display_name(at.function));
  error.set_proctitle("ray::" + error.function_name());
  error.set_traceback(kDependencyFailed +
                      (raised ? "ray.exceptions.RayTaskError" : error.cause_class()) + ": " +
                      error_text(cause));
  error.set_pid(at.pid);
  error.set_ip(at.ip);
  error.set_actor_id(at.actor_id);
  error.clear_actor_repr();
  error.set_task_id(at.task.binary());
  return error;
}

std::string encoded_dependency_error(Bytes encoded, const Receiver& at) {
  auto value = decode_value(encoded);
  auto cause = value ? decode_error(value->inband) : Result<proto::ErrorValue>(value.error());
  return cause ? encode_error(dependency_error(*cause, at)) : std::string(as_view(encoded));
}

std::string_view error_type_name(const proto::ErrorValue& error) {
  if (error.code() == kTaskRaised) return "TASK_EXECUTION_EXCEPTION";
  if (lost_its_group(error))
    return error.code() == static_cast<int>(Code::kActorDied) ? "ACTOR_UNSCHEDULABLE_ERROR"
                                                              : "TASK_PLACEMENT_GROUP_REMOVED";
  switch (static_cast<Code>(error.code())) {
    case Code::kCancelled: return "TASK_CANCELLED";
    case Code::kActorDied: return "ACTOR_DIED";
    case Code::kActorUnavailable: return "ACTOR_UNAVAILABLE";
    case Code::kNodeDied: return "NODE_DIED";
    case Code::kLocalNodeDied: return "LOCAL_RAYLET_DIED";
    case Code::kOutOfMemory: return "OUT_OF_MEMORY";
    case Code::kOutOfDisk: return "OUT_OF_DISK_ERROR";
    case Code::kObjectLost: return "OBJECT_LOST";
    case Code::kOwnerDied: return "OWNER_DIED";
    case Code::kUnschedulable: return "TASK_UNSCHEDULABLE_ERROR";
    case Code::kRuntimeEnvSetup: return "RUNTIME_ENV_SETUP_FAILED";
    default: return "WORKER_DIED";
  }
}

proto::ExitInfo exit_as_told(const Result<proto::WorkerExitReply>& answer,
                             const proto::WorkerAddress& process, const NodeId& node) {
  proto::ExitInfo info;
  if (answer) {
    info = answer->info();
  } else if (!node.is_nil()) {
    info.set_kind(proto::ExitInfo::NODE_DIED);
    info.set_node_id(node.binary());
  } else {
    info.set_message(answer.error().message);
  }
  if (info.ip().empty()) info.set_ip(process.ip());
  if (info.worker_id().empty()) info.set_worker_id(process.worker_id());
  return info;
}

std::string describe_exit(const proto::ExitInfo& info) {
  std::string text;
  switch (info.kind()) {
    // The observer of the process's end has put the exit code or the signal into the message.
    case proto::ExitInfo::SIGNALED:
      if (info.message().empty())
        text =
            fmt::format("it was killed by signal {} ({})", info.signal(), strsignal(info.signal()));
      break;
    case proto::ExitInfo::EXITED:
      if (info.message().empty()) text = fmt::format("it exited with code {}", info.exit_code());
      break;
    case proto::ExitInfo::NODE_DIED:
      text = fmt::format("its node ({}) died", info.ip().empty() ? "unknown" : info.ip());
      break;
    case proto::ExitInfo::KILLED_BY_USER: text = "it was killed by ray.kill"; break;
    case proto::ExitInfo::OUT_OF_SCOPE: text = "all references to the actor were removed"; break;
    case proto::ExitInfo::INTENTIONAL: text = "it exited intentionally"; break;
    case proto::ExitInfo::INIT_FAILED: text = "its constructor raised an exception"; break;
    case proto::ExitInfo::OUT_OF_MEMORY:
      text = "it was ended because the node ran out of memory";
      break;
    case proto::ExitInfo::JOB_FINISHED: text = "its job finished"; break;
    case proto::ExitInfo::OWNER_DIED: text = "its owner died"; break;
    case proto::ExitInfo::GROUP_REMOVED: text = "its placement group was removed"; break;
    case proto::ExitInfo::UNSCHEDULABLE: text = "it cannot be scheduled"; break;
    default:
      if (info.message().empty()) text = "the cause is not known";
  }
  if (!info.message().empty()) text += (text.empty() ? "" : ": ") + info.message();
  text += '.';
  if (!info.log_tail().empty()) text += "\nLast lines of its log:\n" + info.log_tail();
  return text;
}

proto::ErrorValue system_error(Code code, const std::string& message) {
  proto::ErrorValue error;
  error.set_code(static_cast<int>(code));
  error.set_message(message);
  return error;
}

proto::ErrorValue system_error(Code code, const std::string& message, const Task& task) {
  proto::ErrorValue error = system_error(code, message);
  error.set_function_name(task.function->spec.name());
  error.set_task_id(task.id.binary());
  return error;
}

std::string retry_text(const Task& task, const proto::ErrorValue& error) {
  std::string text = fmt::format(
      "Task {} failed. There are {} retries remaining, so the task will be retried. Error: {}",
      display_name(task.function->spec.function()),
      task.retries_left < 0 ? "infinite" : std::to_string(task.retries_left),
      error.code() == kTaskRaised ? "User exception:\n" + error_text(error) : error_text(error));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

proto::ErrorValue cancelled_error(const Task& task) {
  return system_error(Code::kCancelled,
                      fmt::format("Task {} was cancelled.", task.function->spec.name()), task);
}

proto::ErrorValue group_removed_error(const Task& task) {
  auto error =
      system_error(Code::kUnschedulable,
                   "The placement group corresponding to this task has been removed.", task);
  error.mutable_exit()->set_kind(proto::ExitInfo::GROUP_REMOVED);
  return error;
}

proto::ErrorValue without_excess(proto::ErrorValue error) {
  constexpr size_t kMostText = 1 << 20;
  const size_t bytes = error.ByteSizeLong();
  if (bytes <= kMaxErrorBytes) return error;
  error.clear_cause();
  const std::string note = fmt::format(
      "\n(The error has {}, and more than {} is not sent: the exception itself is left out. Put "
      "large data into an object and raise an exception that holds its reference.)",
      binary_bytes(static_cast<double>(bytes)), binary_bytes(kMaxErrorBytes));
  error.set_message(shortened(error.message(), kMostText) + note);
  error.set_traceback(shortened(error.traceback(), kMostText) + note);
  return error;
}

proto::ErrorValue worker_death_error(const Task& task, const proto::ExitInfo& info) {
  bool node = info.kind() == proto::ExitInfo::NODE_DIED;
  Code code = node                                            ? Code::kNodeDied
              : info.kind() == proto::ExitInfo::OUT_OF_MEMORY ? Code::kOutOfMemory
                                                              : Code::kWorkerCrashed;
  std::string where = info.pid() && info.message().empty()
                          ? fmt::format(" (pid={}, ip={})", info.pid(), info.ip())
                          : "";
  auto error = system_error(
      code,
      fmt::format(
          "The worker{} died unexpectedly while executing this task. Task {} failed because {}",
          where, task.function->spec.name(), describe_exit(info)),
      task);
  *error.mutable_exit() = info;
  return error;
}

proto::ErrorValue actor_death_error(const Task* task, const ActorId& actor,
                                    const proto::ActorInfo* info, const proto::ExitInfo& exit) {
  if (exit.kind() == proto::ExitInfo::INIT_FAILED &&
      exit.exit_code() == static_cast<int>(Code::kRuntimeEnvSetup)) {
    auto error = system_error(
        Code::kRuntimeEnvSetup,
        "Could not create the actor because its associated runtime env failed to be created.\n" +
            exit.message());
    error.set_actor_id(actor.binary());
    *error.mutable_exit() = exit;
    return error;
  }
  if (exit.kind() == proto::ExitInfo::GROUP_REMOVED && exit.pid() == 0) {
    std::string text =
        "Could not create the actor because its associated placement group was removed.";
    if (info)
      text += "\nRequired placement group " + to_hex(info->spec().creation().group_id()) +
              " is removed.";
    auto error = system_error(Code::kActorDied, text);
    error.set_actor_id(actor.binary());
    *error.mutable_exit() = exit;
    return error;
  }
  std::string text = "The actor died unexpectedly before finishing this task.\n";
  // The head may have told nothing of the actor, but the call knows its class.
  std::string class_name = info ? info->spec().class_name() : "";
  if (class_name.empty() && task) class_name = task->function->spec.function().class_name();
  if (!class_name.empty()) text += "\tclass_name: " + class_name + "\n";
  text += "\tactor_id: " + actor.hex() + "\n";
  if (info && info->pid()) text += fmt::format("\tpid: {}\n", info->pid());
  if (info && !info->spec().name().empty()) text += "\tname: " + info->spec().name() + "\n";
  if (info && !info->spec().ray_namespace().empty())
    text += "\tnamespace: " + info->spec().ray_namespace() + "\n";
  if (!exit.ip().empty()) text += "\tip: " + exit.ip() + "\n";
  text += "The actor is dead because " + describe_exit(exit);
  auto error = system_error(Code::kActorDied, text);
  error.set_actor_id(actor.binary());
  if (task) {
    error.set_function_name(task->function->spec.name());
    error.set_task_id(task->id.binary());
  }
  *error.mutable_exit() = exit;
  if (exit.kind() == proto::ExitInfo::INIT_FAILED) error.set_cause_class("__init__");
  return error;
}

}  // namespace rt::worker
