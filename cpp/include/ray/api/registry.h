// RAY_REMOTE registers the functions that other processes may call, under their source text.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "ray/api/exceptions.h"
#include "ray/api/function_traits.h"
#include "ray/api/serializer.h"

namespace ray {
namespace internal {

// The object behind an actor, with its type erased. The executor of the actor owns it; methods may
// be called from several threads.
class RAY_API ActorInstance {
 public:
  ~ActorInstance();

  // Takes ownership of `object`, which must have been allocated with new.
  template <class T>
  static std::shared_ptr<ActorInstance> Own(T* object) {
    return std::shared_ptr<ActorInstance>(
        new ActorInstance(std::shared_ptr<void>(object, [](void* p) { delete static_cast<T*>(p); }),
                          typeid(T), [](void* p) { throw static_cast<T*>(p); }));
  }

  // The object as a C, which is its own class or a public base of it; throws RayException
  // otherwise.
  template <class C>
  C* As() {
    if (type_ == std::type_index(typeid(C))) return static_cast<C*>(object_.get());
    if (void* known = KnownBase(typeid(C))) return static_cast<C*>(known);
    // The two classes may be known in different libraries only, and then only the exception
    // machinery can find a base at run time. The result is remembered, so that this happens once
    // per base.
    try {
      throw_object_(object_.get());
    } catch (C* base) {
      RememberBase(typeid(C), base);
      return base;
    } catch (...) {}
    throw RayException("The actor is a " + DemangledName(type_.name()) + ", which is not a " +
                       DemangledName(typeid(C).name()) + ".");
  }

 private:
  struct Bases;  // The results of As(), by class.
  ActorInstance(std::shared_ptr<void> object, std::type_index type, void (*throw_object)(void*));
  void* KnownBase(std::type_index type);
  void RememberBase(std::type_index type, void* base);

  const std::shared_ptr<void> object_;
  const std::type_index type_;
  void (*const throw_object_)(void*);
  const std::unique_ptr<Bases> bases_;
};

struct CallResult {
  EncodedValue value;
  std::shared_ptr<ActorInstance> instance;  // Set by a factory.
};

using Arguments = std::vector<StoredValue>;
using Invoker = CallResult (*)(const void* pointer, ActorInstance* self, const Arguments& args);

struct FunctionEntry {
  std::string text;
  Invoker invoke = nullptr;
  std::string pointer;  // The bytes of the function pointer.
  std::type_index type = typeid(void);
  bool is_method = false;
  bool is_factory = false;
};

// All registered functions of the process. It is filled while libraries are loaded, and any thread
// may read it.
class RAY_API Registry {
 public:
  static Registry& Instance();

  // For a second function of the same text it throws RayException, or keeps a complaint for
  // EndLoading() while a library is being loaded.
  void Add(FunctionEntry entry);
  // Null when the function is not registered. Entries live as long as the process.
  const FunctionEntry* Find(const std::string& text) const;
  const FunctionEntry* Find(std::type_index type, const std::string& pointer) const;
  // The method "&Class::name" of any class; null when there is none or more than one.
  const FunctionEntry* FindMethod(const std::string& name) const;

  // The two calls enclose dlopen(), through which no exception can pass. EndLoading() returns the
  // complaints.
  void BeginLoading();
  std::vector<std::string> EndLoading();
  std::vector<std::string> Texts() const;

 private:
  struct Impl;
  Registry();
  // Never freed, because libraries may look up functions until the process ends.
  Impl* const impl_;
};

// Splits "f, C::g, RAY_FUNC(h, int)" into its parts. Throws RayException when there are not
// `count`.
RAY_API std::vector<std::string> SplitRegistration(const std::string& text, std::size_t count);
[[noreturn]] RAY_API void ThrowArgumentCount(std::size_t expected, std::size_t got);

template <class F>
std::string PointerBytes(F function) {
  return std::string(reinterpret_cast<const char*>(&function), sizeof function);
}

template <class F, class... A, std::size_t... I>
CallResult InvokeWith(F function, ActorInstance* self, const Arguments& args, std::tuple<A...>*,
                      std::index_sequence<I...>) {
  using Traits = FunctionTraits<F>;
  using R = typename Traits::Result;
  if (args.size() != sizeof...(A)) ThrowArgumentCount(sizeof...(A), args.size());
  std::tuple<std::decay_t<A>...> values{Decode<std::decay_t<A>>(args[I])...};
  auto call = [&]() -> R {
    if constexpr (Traits::kIsMethod) {
      return (self->template As<typename Traits::Class>()->*function)(
          static_cast<A&&>(std::get<I>(values))...);
    } else {
      return function(static_cast<A&&>(std::get<I>(values))...);
    }
  };
  (void)self;
  CallResult result;
  if constexpr (Traits::kIsFactory) {
    auto* object = call();
    if (!object) throw RayException("The actor's factory function returned a null pointer.");
    result.instance = ActorInstance::Own(object);
    result.value.is_void = true;
  } else if constexpr (std::is_void<R>::value) {
    call();
    result.value.is_void = true;
  } else {
    result.value = Encode(call());
  }
  return result;
}

template <class F>
CallResult Invoke(const void* pointer, ActorInstance* self, const Arguments& args) {
  using Traits = FunctionTraits<F>;
  using Args = typename Traits::Args;
  F function;
  std::memcpy(&function, pointer, sizeof function);
  if (Traits::kIsMethod && !self) throw RayException("A method was called without an actor.");
  return InvokeWith(function, self, args, static_cast<Args*>(nullptr),
                    std::make_index_sequence<std::tuple_size<Args>::value>());
}

template <class F>
FunctionEntry MakeEntry(std::string text, F function) {
  FunctionEntry entry;
  entry.text = std::move(text);
  entry.invoke = &Invoke<F>;
  entry.pointer = PointerBytes(function);
  entry.type = typeid(F);
  entry.is_method = FunctionTraits<F>::kIsMethod;
  entry.is_factory = FunctionTraits<F>::kIsFactory;
  return entry;
}

template <class... F>
bool RegisterRemote(const char* text, F... functions) {
  std::vector<std::string> texts = SplitRegistration(text, sizeof...(F));
  std::size_t next = 0;
  (Registry::Instance().Add(MakeEntry(texts[next++], functions)), ...);
  return true;
}

// The text under which a function is registered; empty when it is not.
template <class F>
std::string RegisteredText(F function) {
  const FunctionEntry* entry = Registry::Instance().Find(typeid(F), PointerBytes(function));
  return entry ? entry->text : std::string();
}
[[noreturn]] RAY_API void ThrowNotRegistered(const std::string& type);

// Selects the overload that takes A...
template <class... A>
struct Overload {
  template <class R>
  constexpr auto operator()(R (*function)(A...)) const {
    return function;
  }
  template <class R, class C>
  constexpr auto operator()(R (C::*method)(A...)) const {
    return method;
  }
  template <class R, class C>
  constexpr auto operator()(R (C::*method)(A...) const) const {
    return method;
  }
};

}  // namespace internal
}  // namespace ray

#define RAY_INTERNAL_CONCAT_(a, b) a##b
#define RAY_INTERNAL_CONCAT(a, b) RAY_INTERNAL_CONCAT_(a, b)

// Registers functions. Use it at namespace scope, in a shared library of the code search path:
// RAY_REMOTE(f, Counter::Create, &Counter::Add);
#define RAY_REMOTE(...)                                                                         \
  [[maybe_unused]] static const bool RAY_INTERNAL_CONCAT(ray_remote_registered_, __COUNTER__) = \
      ::ray::internal::RegisterRemote(#__VA_ARGS__, __VA_ARGS__)

// One overload of f, given by its argument types. It is spelled the same in RAY_REMOTE and at the
// call.
#define RAY_FUNC(f, ...) ::ray::internal::Overload<__VA_ARGS__>{}(f)
