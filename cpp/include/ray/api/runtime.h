// The boundary between these headers and libray_api.so: plain types and one abstract class. Not for
// users.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ray/api/exceptions.h"
#include "ray/api/visibility.h"

namespace ray {
namespace internal {

// A counted reference to an object: the last copy of the pointer ends this process's hold.
class RAY_API ObjectRecord {
 public:
  explicit ObjectRecord(std::string id) : id_(std::move(id)) {}
  virtual ~ObjectRecord();
  ObjectRecord(const ObjectRecord&) = delete;
  ObjectRecord& operator=(const ObjectRecord&) = delete;
  const std::string& id() const { return id_; }

 private:
  const std::string id_;
};
using ObjectPtr = std::shared_ptr<const ObjectRecord>;

// The same for a handle to an actor.
class RAY_API ActorRecord {
 public:
  explicit ActorRecord(std::string id) : id_(std::move(id)) {}
  virtual ~ActorRecord();
  ActorRecord(const ActorRecord&) = delete;
  ActorRecord& operator=(const ActorRecord&) = delete;
  const std::string& id() const { return id_; }

 private:
  const std::string id_;
};
using ActorPtr = std::shared_ptr<const ActorRecord>;

// A value on its way out: msgpack, and the references packed inside.
struct EncodedValue {
  std::string bytes;
  std::vector<ObjectPtr> objects;
  std::vector<ActorPtr> actors;
  bool is_void = false;
};

enum class ValueFormat { kMsgpack, kRaw, kNone };

// A value on its way in: a view that `keepalive` keeps valid, together with the references inside.
struct StoredValue {
  ValueFormat format = ValueFormat::kNone;
  const char* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const void> keepalive;
};

// One argument: `ref` is replaced by its value before the function runs, else `value` is passed.
struct CallArg {
  ObjectPtr ref;
  EncodedValue value;
};

struct CallOptions {
  std::string name;
  bool python =
      false;  // the function, class or method is Python's; functions and classes are of `module`
  std::string module;
  std::unordered_map<std::string, double> resources;
  const char* file = "";  // the call site; string literals
  int line = 0;
};

struct ActorOptions {
  CallOptions call;
  std::string ray_namespace;
  int max_restarts = 0;
  int max_concurrency = 1;
};

// While one lives, references packed in this thread are noted in `value`, so that they travel
// counted.
class RAY_API PackScope {
 public:
  explicit PackScope(EncodedValue& value);
  ~PackScope();
  PackScope(const PackScope&) = delete;
  PackScope& operator=(const PackScope&) = delete;

 private:
  EncodedValue* const outer_;
};
RAY_API void NotePacked(const ObjectPtr& object);
RAY_API void NotePacked(const ActorPtr& actor);

// What runs the program: the processes of a cluster, or (local mode) threads of this process. Any
// thread may call. Errors are thrown as the exceptions of exceptions.h.
class RAY_API Runtime {
 public:
  virtual ~Runtime();

  virtual bool IsLocal() const = 0;
  virtual std::string Namespace() const = 0;

  virtual ObjectPtr Put(EncodedValue value) = 0;
  // Waits at most timeout_ms (-1: for ever) for all; throws the first error in order.
  virtual std::vector<StoredValue> Get(const std::vector<ObjectPtr>& objects, int timeout_ms) = 0;
  // One flag per object.
  virtual std::vector<bool> Wait(const std::vector<ObjectPtr>& objects, int num_objects,
                                 int timeout_ms) = 0;
  // Throws when this process does not know the object.
  virtual ObjectPtr FindObject(const std::string& id) = 0;

  // Functions are named by their text in RAY_REMOTE, Python's by their qualified name.
  virtual ObjectPtr CallFunction(const std::string& function, const CallOptions& options,
                                 std::vector<CallArg> args) = 0;
  virtual ActorPtr CreateActor(const std::string& factory, const ActorOptions& options,
                               std::vector<CallArg> args) = 0;
  virtual ObjectPtr CallMethod(const ActorPtr& actor, const std::string& method,
                               const CallOptions& options, std::vector<CallArg> args) = 0;
  virtual void KillActor(const ActorPtr& actor, bool no_restart) = 0;
  // Null: no such actor.
  virtual ActorPtr GetActor(const std::string& name, const std::string& ray_namespace) = 0;
  virtual ActorPtr FindActor(const std::string& id) = 0;

  // Of the actor whose method the calling thread runs.
  virtual bool InActor() const = 0;
  virtual bool WasCurrentActorRestarted() const = 0;
};

// The one of this process; throws RayException before Init().
RAY_API Runtime& CurrentRuntime();

// Throws RayException for an empty name, zero, a negative amount, or an amount above 1 with a
// fraction.
RAY_API void CheckResources(const std::unordered_map<std::string, double>& resources);

}  // namespace internal
}  // namespace ray
