#include "invoke.h"

#include <cxxabi.h>
#include <fmt/core.h>

namespace ray::internal {
namespace {

thread_local const CallContext* t_call = nullptr;

std::string current_exception_type() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  return type ? DemangledName(type->name()) : "unknown";
}

bool is_plain_name(const std::string& text) {
  return !text.empty() && text.find_first_of("(), \t<>&") == std::string::npos;
}

}  // namespace

CallScope::CallScope(const CallContext& context) : outer_(t_call) { t_call = &context; }
CallScope::~CallScope() { t_call = outer_; }
const CallContext* current_call() { return t_call; }

CallOutcome run_call(const FunctionEntry& entry, ActorInstance* self, const Arguments& args,
                     const CallContext& context) {
  CallFailure failure;
  try {
    CallScope scope(context);
    return {entry.invoke(entry.pointer.data(), self, args), std::nullopt};
  } catch (const RayIntentionalSystemExitException& e) {
    failure.exit_actor = true;
    failure.message = e.what();
  } catch (const std::exception& e) {
    failure.type = current_exception_type();
    failure.message = e.what();
  } catch (...) {
    failure.type = current_exception_type();
    failure.message = "the function threw an object that is not derived from std::exception";
  }
  return {{}, std::move(failure)};
}

std::string describe_failure(const std::string& function, const CallFailure& failure) {
  return fmt::format("C++ exception in {}: {}: {}", function, failure.type, failure.message);
}

MethodName split_method(const std::string& text) {
  size_t colons = text.rfind("::");
  if (text.size() < 2 || text[0] != '&' || colons == std::string::npos ||
      !is_plain_name(text.substr(1)))
    return {"", text};
  return {text.substr(1, colons - 1), text.substr(colons + 2)};
}

std::string join_method(const std::string& class_name, const std::string& name) {
  return "&" + class_name + "::" + name;
}

std::string class_of_factory(const std::string& text) {
  size_t colons = text.rfind("::");
  return colons == std::string::npos || !is_plain_name(text) ? text : text.substr(0, colons);
}

}  // namespace ray::internal
