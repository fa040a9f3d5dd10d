// ObjectRef<T>: a counted reference to a value somewhere in the cluster, which lives as long as
// some process has a copy of the reference.
#pragma once

#include <list>
#include <memory>
#include <msgpack.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ray/api/runtime.h"
#include "ray/api/serializer.h"

namespace ray {
namespace internal {

// The part of a reference that does not depend on T. It is serialized as its id; the reference
// travels beside the value, so that it is counted (PackScope).
class ObjectRefBase {
 public:
  ObjectRefBase() = default;
  explicit ObjectRefBase(ObjectPtr record) : record_(std::move(record)) {}

  // The binary id; empty for a default constructed reference.
  const std::string& ID() const {
    static const std::string empty;
    return record_ ? record_->id() : empty;
  }
  static constexpr bool IsObjectRef() { return true; }
  const ObjectPtr& record() const { return record_; }

  template <class Packer>
  void msgpack_pack(Packer& packer) const {
    if (record_) NotePacked(record_);
    packer.pack(ID());
  }
  void msgpack_unpack(const msgpack::object& object) {
    std::string id = object.as<std::string>();
    record_ = id.empty() ? nullptr : CurrentRuntime()->FindObject(id);
  }

 protected:
  const ObjectPtr& Checked() const {
    if (!record_)
      throw RayException(
          "An ObjectRef that refers to nothing (default constructed or moved from) has no value.");
    return record_;
  }

 private:
  ObjectPtr record_;
};

template <class T>
struct ObjectRefElement {
  static constexpr bool kIsRef = false;
  using Type = void;
};

}  // namespace internal

template <class T>
class ObjectRef : public internal::ObjectRefBase {
 public:
  using ElementType = T;

  ObjectRef() = default;
  // Makes a reference from a binary id that this process knows; throws RayException otherwise.
  ObjectRef(const std::string& id) : ObjectRefBase(internal::CurrentRuntime()->FindObject(id)) {}
  explicit ObjectRef(internal::ObjectPtr record) : ObjectRefBase(std::move(record)) {}

  bool operator==(const ObjectRef& other) const { return ID() == other.ID(); }
  bool operator!=(const ObjectRef& other) const { return !(*this == other); }

  // Waits for the value. Throws the error that is stored instead of one, or RayTimeoutException
  // after timeout_ms milliseconds (-1: without limit).
  std::shared_ptr<T> Get() const { return Get(-1); }
  std::shared_ptr<T> Get(const int& timeout_ms) const {
    return std::make_shared<T>(
        internal::Decode<T>(internal::CurrentRuntime()->Get({Checked()}, timeout_ms).front()));
  }
};

template <>
class ObjectRef<void> : public internal::ObjectRefBase {
 public:
  using ElementType = void;

  ObjectRef() = default;
  ObjectRef(const std::string& id) : ObjectRefBase(internal::CurrentRuntime()->FindObject(id)) {}
  explicit ObjectRef(internal::ObjectPtr record) : ObjectRefBase(std::move(record)) {}

  bool operator==(const ObjectRef& other) const { return ID() == other.ID(); }
  bool operator!=(const ObjectRef& other) const { return !(*this == other); }

  // Waits for the end of the call. Throws as ObjectRef<T>::Get() does.
  void Get() const { Get(-1); }
  void Get(const int& timeout_ms) const {
    internal::CurrentRuntime()->Get({Checked()}, timeout_ms);
  }
};

namespace internal {

template <class T>
struct ObjectRefElement<ObjectRef<T>> {
  static constexpr bool kIsRef = true;
  using Type = T;
};

template <class T>
std::vector<ObjectPtr> RecordsOf(const std::vector<ObjectRef<T>>& refs) {
  std::vector<ObjectPtr> records;
  records.reserve(refs.size());
  for (const auto& ref : refs) {
    if (!ref.record())
      throw RayException(
          "An ObjectRef that refers to nothing (default constructed or moved from) has no value.");
    records.push_back(ref.record());
  }
  return records;
}

template <class T>
std::vector<std::shared_ptr<T>> GetAll(const std::vector<ObjectPtr>& records, int timeout_ms) {
  std::vector<std::shared_ptr<T>> out;
  if (records.empty()) return out;
  std::vector<StoredValue> values = CurrentRuntime()->Get(records, timeout_ms);
  out.reserve(values.size());
  for (const StoredValue& value : values) {
    if constexpr (std::is_void<T>::value) {
      out.push_back(nullptr);
    } else {
      out.push_back(std::make_shared<T>(Decode<T>(value)));
    }
  }
  return out;
}

}  // namespace internal

// The result of Wait(); both lists are in the order of its argument.
template <class T>
class WaitResult {
 public:
  WaitResult(std::list<ObjectRef<T>>&& ready_refs, std::list<ObjectRef<T>>&& unready_refs)
      : ready(std::move(ready_refs)), unready(std::move(unready_refs)) {}

  std::list<ObjectRef<T>> ready;
  std::list<ObjectRef<T>> unready;
};

}  // namespace ray
