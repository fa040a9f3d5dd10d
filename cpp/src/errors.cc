#include "errors.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "worker/core/death.h"

namespace ray::internal {
namespace {

std::string own_traceback(const rt::proto::ErrorValue& error) {
  return fmt::format("C++ exception in {}: {}", error.function_name(), error.message());
}

std::string task_text(const rt::proto::ErrorValue& error) {
  std::string where = error.pid() ? fmt::format(" (pid={}, ip={})", error.pid(), error.ip()) : "";
  if (error.language() == rt::proto::LANGUAGE_CPP) {
    // The traceback of a task whose argument failed names the tasks on the way.
    std::string way = error.traceback().empty() || error.traceback() == own_traceback(error)
                          ? ""
                          : "\n" + error.traceback();
    return fmt::format("C++ exception in {}{}: {}{}", error.function_name(), where, error.message(),
                       way);
  }
  return fmt::format("{}{}: {}", error.function_name(), where,
                     error.traceback().empty() ? error.message() : error.traceback());
}

// If `text` begins with the parts `from`, with texts without a "'" between them, appends the same
// with the parts `to` and returns the length of what was read; otherwise returns 0.
size_t translate(std::string_view text, const std::vector<std::string_view>& from,
                 const std::vector<std::string_view>& to, std::string* out) {
  std::string translated;
  size_t at = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t next = i == 0 ? 0 : text.find('\'', at);
    if (next == std::string_view::npos || !text.substr(next).starts_with(from[i])) return 0;
    translated.append(text.substr(at, next - at)).append(to[i]);
    at = next + from[i].size();
  }
  *out += translated;
  return at;
}

// Messages of the system name the calls of Python, because all processes make them and most
// programs are Python's. Here they name those of <ray/api.h>.
std::string in_cpp(const std::string& message) {
  // A call is its parts in this order, with texts without a "'" between them.
  struct Call {
    std::vector<std::string_view> python, cpp;
  };
  static const Call kCalls[] = {
      {{"ray.get_actor('", "', namespace='", "')"}, {"ray::GetActor<T>(\"", "\", \"", "\")"}},
      {{"ray.util.get_placement_group('", "')"}, {"ray::GetPlacementGroup(\"", "\")"}},
      {{"ray.kill"}, {"ActorHandle::Kill()"}},
  };
  std::string text;
  for (std::string_view rest = message; !rest.empty();) {
    size_t used = 0;
    for (const Call& call : kCalls) {
      std::string translated;
      used = translate(rest, call.python, call.cpp, &translated);
      text += translated;
      if (used > 0) break;
    }
    if (used == 0) text += rest[0];
    rest.remove_prefix(std::max<size_t>(used, 1));
  }
  return text;
}

}  // namespace

void throw_error(const rt::Error& error) { throw RayException(in_cpp(error.message)); }

void throw_stored_error(rt::Bytes inband) {
  rt::proto::ErrorValue error;
  if (!error.ParseFromArray(inband.data(), static_cast<int>(inband.size())))
    throw RayException("The stored error cannot be read.");
  if (error.code() == rt::worker::kTaskRaised) throw RayTaskException(task_text(error));
  switch (static_cast<rt::Code>(error.code())) {
    // The actor's process died under this call; the actor may be restarted.
    case rt::Code::kActorUnavailable:
    case rt::Code::kActorDied: throw RayActorException(in_cpp(error.message()));
    case rt::Code::kWorkerCrashed:
    case rt::Code::kNodeDied: throw RayWorkerException(error.message());
    case rt::Code::kObjectLost:
    case rt::Code::kOwnerDied: throw UnreconstructableException(error.message());
    default: throw RayException(in_cpp(error.message()));
  }
}

std::string display_name(const rt::proto::FunctionDescriptor& function) {
  return function.class_name().empty() || function.name().starts_with("RAY_FUNC")
             ? function.name()
             : function.class_name() + "::" + function.name();
}

rt::proto::ErrorValue call_error(const rt::worker::ExecutingTask& task,
                                 const rt::worker::Context& context, const CallFailure& failure) {
  rt::proto::ErrorValue error;
  error.set_function_name(display_name(task.spec().function()));
  error.set_task_id(task.id().binary());
  error.set_language(rt::proto::LANGUAGE_CPP);
  error.set_pid(getpid());
  error.set_ip(context.node_ip);
  if (const auto* spec = task.actor_spec()) error.set_actor_id(spec->actor_id());
  if (failure.exit_actor) {
    error.set_code(static_cast<int>(rt::Code::kActorDied));
    error.set_message("The actor is dead because it called ray::ExitActor().");
    error.mutable_exit()->set_kind(rt::proto::ExitInfo::INTENTIONAL);
    return error;
  }
  error.set_code(rt::worker::kTaskRaised);
  error.set_message(fmt::format("{}: {}", failure.type, failure.message));
  error.set_cause_class(failure.type);
  error.set_traceback(own_traceback(error));
  return error;
}

}  // namespace ray::internal
