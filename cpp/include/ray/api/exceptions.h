// The exceptions that the API throws. All derive from RayException; the text is in what() and in
// msg_.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "ray/api/visibility.h"

namespace ray {
namespace internal {

// Other failures: wrong resources, creation errors, unregistered functions, failed puts and waits,
// missing features.
class RAY_API RayException : public std::exception {
 public:
  explicit RayException(std::string msg) : msg_(std::move(msg)) {}
  const char* what() const noexcept override { return msg_.c_str(); }

  std::string msg_;
};

// A remote function threw. The text has the function's name, the exception's type and its message.
class RAY_API RayTaskException : public RayException {
 public:
  using RayException::RayException;
};

// The actor has died, or its process died during the call.
class RAY_API RayActorException : public RayException {
 public:
  using RayException::RayException;
};

// The worker or the node that ran the task died, and its retries are used up.
class RAY_API RayWorkerException : public RayException {
 public:
  using RayException::RayException;
};

// The object is lost: no copy is left, or its owner has died.
class RAY_API UnreconstructableException : public RayException {
 public:
  using RayException::RayException;
};

// The function is in none of the libraries that the worker loaded. It is thrown in the worker;
// callers see a RayTaskException with its text.
class RAY_API RayFunctionNotFound : public RayException {
 public:
  using RayException::RayException;
};

// A field of a runtime environment is wrong.
class RAY_API RayRuntimeEnvException : public RayException {
 public:
  using RayException::RayException;
};

// Get() has waited for its timeout.
class RAY_API RayTimeoutException : public RayException {
 public:
  using RayException::RayException;
};

// Leaves the running method in ExitActor(). User code must not catch it.
class RAY_API RayIntentionalSystemExitException : public RayException {
 public:
  using RayException::RayException;
};

}  // namespace internal
}  // namespace ray
