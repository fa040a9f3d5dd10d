// What the API throws. All derive from RayException; the text is in what() and in msg_.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "ray/api/visibility.h"

namespace ray {
namespace internal {

// General failure: wrong resources, creation errors, unregistered functions, failed puts and waits,
// absent features.
class RAY_API RayException : public std::exception {
 public:
  explicit RayException(std::string msg) : msg_(std::move(msg)) {}
  const char* what() const noexcept override { return msg_.c_str(); }

  std::string msg_;
};

// A remote function threw: its name, the exception's type and message.
class RAY_API RayTaskException : public RayException {
 public:
  using RayException::RayException;
};

// The actor died.
class RAY_API RayActorException : public RayException {
 public:
  using RayException::RayException;
};

// The worker that ran the task died, and its retries are used up.
class RAY_API RayWorkerException : public RayException {
 public:
  using RayException::RayException;
};

// The object is lost: its copies, its owner, or what would be needed to make it again are gone.
class RAY_API UnreconstructableException : public RayException {
 public:
  using RayException::RayException;
};

// The function is in none of the libraries the worker loaded. Thrown in the worker: callers see a
// RayTaskException with its text.
class RAY_API RayFunctionNotFound : public RayException {
 public:
  using RayException::RayException;
};

// A field of a runtime environment is wrong.
class RAY_API RayRuntimeEnvException : public RayException {
 public:
  using RayException::RayException;
};

// Get() waited longer than it was allowed to.
class RAY_API RayTimeoutException : public RayException {
 public:
  using RayException::RayException;
};

// How ExitActor() leaves the running method. Not for users: do not catch it.
class RAY_API RayIntentionalSystemExitException : public RayException {
 public:
  using RayException::RayException;
};

}  // namespace internal
}  // namespace ray
