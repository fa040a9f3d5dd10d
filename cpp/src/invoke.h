// Running registered functions, the same in local mode and in workers.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ray/api/registry.h"

namespace ray::internal {

// What the thread is running: for WasCurrentActorRestarted() and ExitActor().
struct CallContext {
  bool in_actor = false;
  bool restarted = false;
  const std::string* ray_namespace =
      nullptr;  // of the job the call belongs to; null: the process's
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
const CallContext* current_call();  // null outside of calls

// How a call ended that did not return.
struct CallFailure {
  std::string type;  // demangled; empty for what is no exception class
  std::string message;
  bool exit_actor = false;  // ExitActor() was called
};

// `failure` is filled instead of throwing. Also when `entry` does not fit (a function where a
// method was called and so on).
CallResult run_call(const FunctionEntry& entry, ActorInstance* self, const Arguments& args,
                    const CallContext& context, CallFailure* failure, bool* failed);

// The text of a RayTaskException.
std::string describe_failure(const std::string& function, const CallFailure& failure);

// "&Counter::Add" is method Add of class Counter; other spellings (RAY_FUNC) stay whole, in the
// class of the factory.
struct MethodName {
  std::string class_name, name;
};
MethodName split_method(const std::string& text);
std::string join_method(const std::string& class_name, const std::string& name);
// The class a factory's text speaks of: "Counter" of "Counter::Create", else the text.
std::string class_of_factory(const std::string& text);

}  // namespace ray::internal
