// The C++ API. User code that runs in the cluster is built as a shared library in the code search
// path:
//
//   int Plus(int a, int b) { return a + b; }
//   RAY_REMOTE(Plus);
//   ...
//   ray::Init();
//   int three = *ray::Task(Plus).Remote(1, 2).Get();
//
// Any thread may call these functions. All but Init(), Shutdown() and IsInitialized() need a
// preceding Init(). Failures are thrown: see ray/api/exceptions.h.
#pragma once

#include <boost/optional.hpp>
#include <list>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "ray/api/actor_handle.h"
#include "ray/api/callers.h"
#include "ray/api/config.h"
#include "ray/api/cross_language.h"
#include "ray/api/exceptions.h"
#include "ray/api/logging.h"
#include "ray/api/object_ref.h"
#include "ray/api/placement_group.h"
#include "ray/api/registry.h"

namespace ray {

// Starts or joins a cluster; a second call is ignored. Throws RayException when that fails. The
// flags in argv (--ray_address and so on) take precedence over the configuration; an unknown flag
// ends the process.
RAY_API void Init();
RAY_API void Init(RayConfig& config);
RAY_API void Init(RayConfig& config, int argc, char** argv);
RAY_API bool IsInitialized();
// Disconnects, and ends the cluster if Init() started it. Does nothing without a preceding Init().
RAY_API void Shutdown();

RAY_API std::string GetNamespace();
// Whether the current actor has been restarted after a failure; false outside of actors.
RAY_API bool WasCurrentActorRestarted();
// Ends the current actor for good: throws an exception that leaves the running method. Throws
// std::logic_error outside of actors.
RAY_API void ExitActor();

// Stores a copy of `obj`.
template <class T>
ObjectRef<T> Put(const T& obj) {
  return ObjectRef<T>(internal::CurrentRuntime()->Put(internal::Encode(obj)));
}

// Waits for values, at most timeout_ms milliseconds (-1: without limit). Throws
// RayTimeoutException after that time, or the error that is stored instead of a value.
template <class T>
std::shared_ptr<T> Get(const ObjectRef<T>& object) {
  return object.Get();
}
template <class T>
std::shared_ptr<T> Get(const ObjectRef<T>& object, const int& timeout_ms) {
  return object.Get(timeout_ms);
}
inline void Get(const ObjectRef<void>& object) { object.Get(); }
inline void Get(const ObjectRef<void>& object, const int& timeout_ms) { object.Get(timeout_ms); }

template <class T>
std::vector<std::shared_ptr<T>> Get(const std::vector<ObjectRef<T>>& objects,
                                    const int& timeout_ms) {
  return internal::GetAll<T>(internal::RecordsOf(objects), timeout_ms);
}
template <class T>
std::vector<std::shared_ptr<T>> Get(const std::vector<ObjectRef<T>>& objects) {
  return Get(objects, -1);
}

// The same for objects given by their binary ids, which this process must know.
template <class T>
std::vector<std::shared_ptr<T>> Get(const std::vector<std::string>& ids, const int& timeout_ms) {
  std::vector<internal::ObjectPtr> records;
  for (const std::string& id : ids) records.push_back(internal::CurrentRuntime()->FindObject(id));
  return internal::GetAll<T>(records, timeout_ms);
}
template <class T>
std::vector<std::shared_ptr<T>> Get(const std::vector<std::string>& ids) {
  return Get<T>(ids, -1);
}

// Waits until num_objects are ready on this node, at most timeout_ms milliseconds (-1: without
// limit). At most num_objects go to `ready`; `unready` has the others, which may be ready as well.
template <class T>
WaitResult<T> Wait(const std::vector<ObjectRef<T>>& objects, int num_objects, int timeout_ms) {
  std::vector<bool> flags =
      internal::CurrentRuntime()->Wait(internal::RecordsOf(objects), num_objects, timeout_ms);
  std::list<ObjectRef<T>> ready, unready;
  for (std::size_t i = 0; i < objects.size(); ++i)
    (flags[i] ? ready : unready).push_back(objects[i]);
  return WaitResult<T>(std::move(ready), std::move(unready));
}

// Builds a call of a registered free or static function: Task(f).SetResource("CPU",
// 1).Remote(args...).
template <class F>
internal::TaskCaller<F> Task(F function, const char* file = __builtin_FILE(),
                             int line = __builtin_LINE()) {
  static_assert(!internal::FunctionTraits<F>::kIsMethod,
                "a member function is called through an ActorHandle");
  return internal::TaskCaller<F>(function, file, line);
}

// Builds an actor. `factory` is a registered free or static function that returns a pointer to a
// new object, which the actor then owns.
template <class F>
internal::ActorCreator<F> Actor(F factory, const char* file = __builtin_FILE(),
                                int line = __builtin_LINE()) {
  static_assert(
      internal::FunctionTraits<F>::kIsFactory,
      "an actor's factory is a free or static function that returns a pointer to the object");
  return internal::ActorCreator<F>(factory, file, line);
}

// Builds a call of a Python function: Task(PyFunction<int>{"module", "function"}).Remote(args...).
template <class R>
internal::PyTaskCaller<R> Task(PyFunction<R> function, const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) {
  return internal::PyTaskCaller<R>(std::move(function), file, line);
}

// Builds an actor of a Python class: Actor(PyActorClass{"module", "Class"}).Remote(args...).
inline internal::PyActorCreator Actor(PyActorClass actor_class, const char* file = __builtin_FILE(),
                                      int line = __builtin_LINE()) {
  return internal::PyActorCreator(std::move(actor_class), file, line);
}

// Returns a handle to a named actor, empty when there is none. In a cluster such a handle does not
// keep the actor alive. An empty namespace means the job's own.
template <class T>
boost::optional<ActorHandle<T>> GetActor(const std::string& name,
                                         const std::string& ray_namespace) {
  if (name.empty()) return {};
  internal::ActorPtr actor = internal::CurrentRuntime()->GetActor(name, ray_namespace);
  if (!actor) return {};
  return ActorHandle<T>(std::move(actor));
}
template <class T>
boost::optional<ActorHandle<T>> GetActor(const std::string& name) {
  return GetActor<T>(name, "");
}

// The same for a named actor written in Python.
inline boost::optional<ActorHandleXlang> GetActor(const std::string& name,
                                                  const std::string& ray_namespace = "") {
  if (name.empty()) return {};
  internal::ActorPtr actor = internal::CurrentRuntime()->GetActor(name, ray_namespace);
  if (!actor) return {};
  return ActorHandleXlang(std::move(actor));
}

}  // namespace ray
