// The builders that ray::Task(f), ray::Actor(f) and handle.Task(&C::method) return. A builder
// collects options; Remote() makes the call and returns at once.
#pragma once

#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ray/api/placement_group.h"
#include "ray/api/registry.h"

namespace ray {

template <class T, bool kIsXlang = false>
class ActorHandle;

namespace internal {

template <class Formal, class Actual>
CallArg MakeArg(Actual&& actual) {
  using F = std::decay_t<Formal>;
  using A = std::decay_t<Actual>;
  CallArg arg;
  if constexpr (ObjectRefElement<A>::kIsRef && !ObjectRefElement<F>::kIsRef) {
    if (!actual.record())
      throw RayException(
          "An ObjectRef that refers to nothing (default constructed or moved from) is an "
          "argument.");
    arg.ref = actual.record();
  } else if constexpr (std::is_same<F, A>::value) {
    arg.value = Encode<F>(actual);
  } else {
    arg.value = Encode<F>(static_cast<F>(std::forward<Actual>(actual)));
  }
  return arg;
}

template <class... Formals, class... Actuals>
std::vector<CallArg> MakeArgs(std::tuple<Formals...>*, Actuals&&... actuals) {
  std::vector<CallArg> args;
  args.reserve(sizeof...(Actuals));
  (args.push_back(MakeArg<Formals>(std::forward<Actuals>(actuals))), ...);
  return args;
}

// Checks at compile time that the arguments fit F, and packs them.
template <class F, class... Actuals>
std::vector<CallArg> PackCall(Actuals&&... actuals) {
  using Traits = FunctionTraits<F>;
  using Args = typename Traits::Args;
  constexpr bool match = ArgumentsMatch<Args, Actuals&&...>::value;
  static_assert(match, "arguments not match");
  if constexpr (match) {
    if (Traits::kTakesObjectRef && !CurrentRuntime()->IsLocal())
      throw std::invalid_argument(
          "A remote function whose parameter is an ObjectRef works only in local mode. Take the "
          "value instead: an "
          "ObjectRef passed for it is resolved before the call.");
    return MakeArgs(static_cast<Args*>(nullptr), std::forward<Actuals>(actuals)...);
  } else {
    return {};
  }
}

// The setters that all builders have; Derived is the builder.
template <class Derived>
class OptionSetters {
 public:
  OptionSetters(const char* file, int line) {
    options_.file = file;
    options_.line = line;
  }

  // Sets the name that the state API shows.
  Derived& SetName(std::string name) {
    options_.name = std::move(name);
    return self();
  }
  // Replaces the whole resource request.
  Derived& SetResources(std::unordered_map<std::string, double> resources) {
    options_.resources = std::move(resources);
    return self();
  }
  Derived& SetResource(std::string name, double value) {
    options_.resources[std::move(name)] = value;
    return self();
  }

 protected:
  Derived& self() { return static_cast<Derived&>(*this); }
  CallOptions options_;
};

// The base of builders for registered functions. Throws RayException from Remote() when the
// function is not registered.
template <class Derived, class F>
class CallerBase : public OptionSetters<Derived> {
 public:
  CallerBase(F function, const char* file, int line)
      : OptionSetters<Derived>(file, line), function_(function) {}

 protected:
  std::string Text() const {
    std::string text = RegisteredText(function_);
    if (text.empty()) ThrowNotRegistered(typeid(F).name());
    CheckOptions(this->options_);
    return text;
  }

  F function_;
};

// The setters of builders of what is scheduled, on top of Base, a builder of calls.
template <class Derived, class Base>
class PlacementSetters : public Base {
 public:
  using Base::Base;

  // It runs in that bundle of the group; -1 means in any of them. An empty group means in none.
  Derived& SetPlacementGroup(const PlacementGroup& group, int bundle_index) {
    this->options_.group = group.record();
    this->options_.bundle_index = bundle_index;
    return this->self();
  }
};

// Builds a call of a registered function. Remote() returns the result's reference without waiting.
// It throws RayException when an argument refers to nothing or an option is wrong, and
// std::invalid_argument when the function takes an ObjectRef and does not run in local mode.
template <class F>
class TaskCaller : public PlacementSetters<TaskCaller<F>, CallerBase<TaskCaller<F>, F>> {
 public:
  using PlacementSetters<TaskCaller<F>, CallerBase<TaskCaller<F>, F>>::PlacementSetters;
  using Result = std::decay_t<typename FunctionTraits<F>::Result>;

  template <class... Args>
  ObjectRef<Result> Remote(Args&&... args) {
    std::string text = this->Text();
    return ObjectRef<Result>(CurrentRuntime()->CallFunction(
        text, this->options_, PackCall<F>(std::forward<Args>(args)...)));
  }
};

// Builds a call of an actor's method; otherwise like TaskCaller.
template <class F>
class ActorTaskCaller : public CallerBase<ActorTaskCaller<F>, F> {
 public:
  using Result = std::decay_t<typename FunctionTraits<F>::Result>;

  ActorTaskCaller(ActorPtr actor, F method, const char* file, int line)
      : CallerBase<ActorTaskCaller<F>, F>(method, file, line), actor_(std::move(actor)) {}

  template <class... Args>
  ObjectRef<Result> Remote(Args&&... args) {
    std::string text = this->Text();
    return ObjectRef<Result>(CurrentRuntime()->CallMethod(
        actor_, text, this->options_, PackCall<F>(std::forward<Args>(args)...)));
  }

 private:
  ActorPtr actor_;
};

// The setters of actor builders, on top of Base, a builder of calls.
template <class Derived, class Base>
class ActorSetters : public PlacementSetters<Derived, Base> {
 public:
  using PlacementSetters<Derived, Base>::PlacementSetters;
  using Base::SetName;

  // The name is unique in its namespace. Without a namespace it is the job's own.
  Derived& SetName(std::string name, std::string ray_namespace) {
    this->options_.name = std::move(name);
    ray_namespace_ = std::move(ray_namespace);
    return this->self();
  }
  // -1 means without limit.
  Derived& SetMaxRestarts(int max_restarts) {
    max_restarts_ = max_restarts;
    return this->self();
  }
  // Above 1, methods run in that many threads.
  Derived& SetMaxConcurrency(int max_concurrency) {
    max_concurrency_ = max_concurrency;
    return this->self();
  }

 protected:
  ActorOptions Options() const {
    return {this->options_, ray_namespace_, max_restarts_, max_concurrency_};
  }

 private:
  std::string ray_namespace_;
  int max_restarts_ = 0;
  int max_concurrency_ = 1;
};

// Builds an actor. Remote() returns its handle without waiting for the factory; when that fails,
// the actor's calls do (RayActorException).
template <class F>
class ActorCreator : public ActorSetters<ActorCreator<F>, CallerBase<ActorCreator<F>, F>> {
 public:
  using ActorSetters<ActorCreator<F>, CallerBase<ActorCreator<F>, F>>::ActorSetters;
  using T = std::remove_cv_t<std::remove_pointer_t<typename FunctionTraits<F>::Result>>;

  template <class... Args>
  ActorHandle<T> Remote(Args&&... args) {
    std::string text = this->Text();
    return ActorHandle<T>(CurrentRuntime()->CreateActor(text, this->Options(),
                                                        PackCall<F>(std::forward<Args>(args)...)));
  }
};

}  // namespace internal
}  // namespace ray
