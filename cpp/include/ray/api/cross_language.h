// Calls of Python functions and actors. They are named by their module, which workers import from
// the job's code search path.
//
// Arguments and results are values that both msgpack and Python know: nothing, bool, integers,
// floating point numbers, strings, byte vectors, sequences, maps, and ObjectRefs, which are
// replaced by their values. An exception raised in Python becomes a RayTaskException with its
// traceback.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ray/api/actor_handle.h"
#include "ray/api/callers.h"
#include "ray/api/object_ref.h"

namespace ray {

// Names a Python function. R is the C++ type as which its result is read.
template <class R>
struct PyFunction {
  std::string module_name;
  std::string function_name;
};

// Names a Python class.
struct PyActorClass {
  std::string module_name;
  std::string class_name;
  // Ignored, as a Python class has only this constructor.
  std::string function_name = "__init__";
};

// Names a method of a Python actor. R is the C++ type as which its result is read.
template <class R>
struct PyActorMethod {
  std::string function_name;
};

namespace internal {

template <class Actual>
CallArg MakePyArg(Actual&& actual) {
  using A = std::decay_t<Actual>;
  CallArg arg;
  if constexpr (ObjectRefElement<A>::kIsRef) {
    if (!actual.record())
      throw RayException(
          "An ObjectRef that refers to nothing (default constructed or moved from) is an "
          "argument.");
    arg.ref = actual.record();
  } else {
    arg.value = Encode<A>(actual);
  }
  return arg;
}

template <class... Actuals>
std::vector<CallArg> MakePyArgs(Actuals&&... actuals) {
  std::vector<CallArg> args;
  args.reserve(sizeof...(Actuals));
  (args.push_back(MakePyArg(std::forward<Actuals>(actuals))), ...);
  return args;
}

template <class R>
class PyTaskCaller : public PlacementSetters<PyTaskCaller<R>, OptionSetters<PyTaskCaller<R>>> {
 public:
  PyTaskCaller(PyFunction<R> function, const char* file, int line)
      : PlacementSetters<PyTaskCaller<R>, OptionSetters<PyTaskCaller<R>>>(file, line),
        function_(std::move(function)) {
    this->options_.python = true;
    this->options_.module = function_.module_name;
  }

  template <class... Args>
  ObjectRef<R> Remote(Args&&... args) {
    CheckOptions(this->options_);
    return ObjectRef<R>(CurrentRuntime()->CallFunction(function_.function_name, this->options_,
                                                       MakePyArgs(std::forward<Args>(args)...)));
  }

 private:
  PyFunction<R> function_;
};

template <class R>
class PyActorTaskCaller : public OptionSetters<PyActorTaskCaller<R>> {
 public:
  PyActorTaskCaller(ActorPtr actor, PyActorMethod<R> method, const char* file, int line)
      : OptionSetters<PyActorTaskCaller<R>>(file, line),
        actor_(std::move(actor)),
        method_(std::move(method)) {
    this->options_.python = true;
  }

  template <class... Args>
  ObjectRef<R> Remote(Args&&... args) {
    CheckOptions(this->options_);
    return ObjectRef<R>(CurrentRuntime()->CallMethod(actor_, method_.function_name, this->options_,
                                                     MakePyArgs(std::forward<Args>(args)...)));
  }

 private:
  ActorPtr actor_;
  PyActorMethod<R> method_;
};

}  // namespace internal

// A handle to an actor written in Python.
template <>
class ActorHandle<void, true> : public internal::ActorHandleBase {
 public:
  using ActorHandleBase::ActorHandleBase;

  template <class R>
  internal::PyActorTaskCaller<R> Task(PyActorMethod<R> method, const char* file = __builtin_FILE(),
                                      int line = __builtin_LINE()) const {
    return internal::PyActorTaskCaller<R>(Checked(), std::move(method), file, line);
  }
};

using ActorHandleXlang = ActorHandle<void, true>;

namespace internal {

class PyActorCreator : public ActorSetters<PyActorCreator, OptionSetters<PyActorCreator>> {
 public:
  PyActorCreator(PyActorClass actor_class, const char* file, int line)
      : ActorSetters(file, line), class_(std::move(actor_class)) {
    options_.python = true;
    options_.module = class_.module_name;
  }

  template <class... Args>
  ActorHandleXlang Remote(Args&&... args) {
    CheckOptions(options_);
    return ActorHandleXlang(CurrentRuntime()->CreateActor(class_.class_name, Options(),
                                                          MakePyArgs(std::forward<Args>(args)...)));
  }

 private:
  PyActorClass class_;
};

}  // namespace internal
}  // namespace ray
