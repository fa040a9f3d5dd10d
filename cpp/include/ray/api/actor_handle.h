// ActorHandle<T> calls methods of an actor. The actor ends when its last handle is gone, unless
// its lifetime is DETACHED.
#pragma once

#include <msgpack.hpp>
#include <string>
#include <type_traits>
#include <utility>

#include "ray/api/callers.h"

namespace ray {
namespace internal {

// The part of an actor handle that does not depend on the actor's language. Copies share one
// count.
class ActorHandleBase {
 public:
  ActorHandleBase() = default;
  explicit ActorHandleBase(ActorPtr record) : record_(std::move(record)) {}

  // The binary id; empty for a default constructed handle.
  const std::string& ID() const {
    static const std::string empty;
    return record_ ? record_->id() : empty;
  }
  static constexpr bool IsActorHandle() { return true; }

  // Ends the actor's process at once. With no_restart = false the actor is restarted if it has
  // restarts left.
  void Kill() { Kill(true); }
  void Kill(bool no_restart) { CurrentRuntime()->KillActor(Checked(), no_restart); }

 protected:
  const ActorPtr& Checked() const {
    if (!record_)
      throw RayException(
          "An ActorHandle that refers to nothing (default constructed or moved from) was used.");
    return record_;
  }

  ActorPtr record_;
};

}  // namespace internal

template <class T, bool kIsXlang>
class ActorHandle : public internal::ActorHandleBase {
 public:
  using ActorHandleBase::ActorHandleBase;

  // Makes a handle from ID(), or from a handle packed with msgpack.
  static ActorHandle FromBytes(const std::string& bytes) {
    internal::StoredValue packed{internal::ValueFormat::kMsgpack, bytes.data(), bytes.size(),
                                 nullptr};
    constexpr std::size_t kIdBytes = 16;
    return ActorHandle(internal::CurrentRuntime()->FindActor(
        bytes.size() == kIdBytes ? bytes : internal::Decode<std::string>(packed)));
  }

  // Builds a call of `method`, a member of T or of a base of T that is registered with RAY_REMOTE.
  template <class F>
  internal::ActorTaskCaller<F> Task(F method, const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) const {
    using Traits = internal::FunctionTraits<F>;
    static_assert(Traits::kIsMethod, "the function is not a member function");
    static_assert(std::is_same<typename Traits::Class, T>::value ||
                      std::is_base_of<typename Traits::Class, T>::value,
                  "the function is not a member of the actor's class or of its bases");
    return internal::ActorTaskCaller<F>(Checked(), method, file, line);
  }

  template <class Packer>
  void msgpack_pack(Packer& packer) const {
    if (record_) internal::NotePacked(record_);
    packer.pack(ID());
  }
  void msgpack_unpack(const msgpack::object& object) {
    std::string id = object.as<std::string>();
    record_ = id.empty() ? nullptr : internal::CurrentRuntime()->FindActor(id);
  }
};

}  // namespace ray
