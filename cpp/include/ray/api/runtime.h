// The boundary between these headers and libray_api.so: plain types and one abstract class.
// Programs do not use it.
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

// A counted reference to an object. Destroying the last copy of the pointer releases this
// process's reference.
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

// An outgoing value: its msgpack encoding, and the references packed in it.
struct EncodedValue {
  std::string bytes;
  std::vector<ObjectPtr> objects;
  std::vector<ActorPtr> actors;
  bool is_void = false;
};

enum class ValueFormat { kMsgpack, kRaw, kNone };

// An incoming value: a view of bytes that `keepalive` keeps valid, together with the references in
// it.
struct StoredValue {
  ValueFormat format = ValueFormat::kNone;
  const char* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const void> keepalive;
};

// One argument. If `ref` is set it is replaced by its value before the function runs, else `value`
// is passed.
struct CallArg {
  ObjectPtr ref;
  EncodedValue value;
};

// A placement group. The numbers are those of PlacementStrategy and PlacementGroupState.
struct GroupRecord {
  std::string id;  // Binary; empty: there is no such group.
  std::string name;
  std::vector<std::unordered_map<std::string, double>> bundles;
  int strategy = -1;
  int state = -1;
};

struct CallOptions {
  std::string name;
  // Whether the function, class or method is Python's. `module` is that of a function or class.
  bool python = false;
  std::string module;
  std::unordered_map<std::string, double> resources;
  GroupRecord group;      // The placement group in which it runs; empty: in none.
  int bundle_index = -1;  // In a group: the bundle; -1: any.
  const char* file = "";  // The call site, as string literals.
  int line = 0;
};

struct ActorOptions {
  CallOptions call;
  std::string ray_namespace;
  int max_restarts = 0;
  int max_concurrency = 1;
};

// While a scope exists, references that its thread packs are noted in `value`, so that they travel
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

// Runs the program's calls: in the processes of a cluster, or in threads of this process (local
// mode). Any thread may call. Errors are thrown as the exceptions of exceptions.h.
class RAY_API Runtime {
 public:
  virtual ~Runtime();

  // Ends what the runtime has started. Calls that wait in other threads, and later ones, throw.
  virtual void Stop() = 0;

  virtual bool IsLocal() const = 0;
  virtual std::string Namespace() const = 0;

  virtual ObjectPtr Put(EncodedValue value) = 0;
  // Waits for all objects, at most timeout_ms milliseconds (-1: without limit), and throws the
  // error of one that failed. A cluster does that as soon as it knows of one; local mode waits for
  // all of them.
  virtual std::vector<StoredValue> Get(const std::vector<ObjectPtr>& objects, int timeout_ms) = 0;
  // Returns one flag per object: whether it is ready.
  virtual std::vector<bool> Wait(const std::vector<ObjectPtr>& objects, int num_objects,
                                 int timeout_ms) = 0;
  // Throws when this process does not know the object.
  virtual ObjectPtr FindObject(const std::string& id) = 0;

  // Functions are named by their text in RAY_REMOTE, those of Python by their qualified name.
  virtual ObjectPtr CallFunction(const std::string& function, const CallOptions& options,
                                 std::vector<CallArg> args) = 0;
  virtual ActorPtr CreateActor(const std::string& factory, const ActorOptions& options,
                               std::vector<CallArg> args) = 0;
  virtual ObjectPtr CallMethod(const ActorPtr& actor, const std::string& method,
                               const CallOptions& options, std::vector<CallArg> args) = 0;
  virtual void KillActor(const ActorPtr& actor, bool no_restart) = 0;
  // Null when there is no such actor.
  virtual ActorPtr GetActor(const std::string& name, const std::string& ray_namespace) = 0;
  virtual ActorPtr FindActor(const std::string& id) = 0;

  // Placement groups. `group` has name, bundles and strategy; the result has id and state as well.
  virtual GroupRecord CreateGroup(GroupRecord group) = 0;
  virtual void RemoveGroup(const std::string& id) = 0;
  // Returns false after timeout_s seconds (-1: none); throws when the group is gone.
  virtual bool WaitForGroup(const std::string& id, int timeout_s) = 0;
  virtual std::vector<GroupRecord> Groups() = 0;
  // Their results are empty when there is no such group.
  virtual GroupRecord FindGroup(const std::string& id) = 0;
  virtual GroupRecord FindNamedGroup(const std::string& name) = 0;

  // These are about the actor whose method the calling thread runs.
  virtual bool InActor() const = 0;
  virtual bool WasCurrentActorRestarted() const = 0;
};

// The runtime of this process; throws RayException before Init() and after Shutdown(). Whoever
// calls it holds it for that long, because another thread may call Shutdown() meanwhile.
RAY_API std::shared_ptr<Runtime> CurrentRuntime();

// Throws RayException for an empty name, zero, a negative amount, or an amount above 1 with a
// fraction.
RAY_API void CheckResources(const std::unordered_map<std::string, double>& resources);
// Throws RayException for wrong resources, for a bundle that the placement group does not have, and
// for resources that fit into none of its bundles.
RAY_API void CheckOptions(const CallOptions& options);

}  // namespace internal
}  // namespace ray
