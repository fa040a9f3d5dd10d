// Runs registered functions; used by local mode and by workers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ray/api/registry.h"

namespace ray::internal {

// The call that a thread runs, for WasCurrentActorRestarted() and ExitActor().
struct CallContext {
  bool in_actor = false;
  bool restarted = false;
  // The namespace of the call's job; null means the process's own.
  const std::string* ray_namespace = nullptr;
};

// Sets the context of this thread for one call.
class CallScope {
 public:
  explicit CallScope(const CallContext& context);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  const CallContext* const outer_;
};
const CallContext* current_call();  // Null outside of calls.

// Why a call did not return.
struct CallFailure {
  std::string type;  // Demangled; "unknown" when it has no name.
  std::string message;
  bool exit_actor = false;  // ExitActor() was called.
};

// How a call ended: it returned a result, unless there is a failure.
struct CallOutcome {
  CallResult result;
  std::optional<CallFailure> failure;
};

// Runs a call and does not throw. An `entry` that does not fit the call, such as a method without
// an actor, is a failure, too.
CallOutcome run_call(const FunctionEntry& entry, ActorInstance* self, const Arguments& args,
                     const CallContext& context);

// The text of a RayTaskException.
std::string describe_failure(const std::string& function, const CallFailure& failure);

// "&Counter::Add" is method Add of class Counter. Other spellings (RAY_FUNC) are not split:
// class_name is empty.
struct MethodName {
  std::string class_name, name;
};
MethodName split_method(const std::string& text);
std::string join_method(const std::string& class_name, const std::string& name);
// The class that a factory's text names: "Counter" in "Counter::Create", else the whole text.
std::string class_of_factory(const std::string& text);

}  // namespace ray::internal
