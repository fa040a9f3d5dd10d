// The API on a cluster: converts arguments and options to what worker/worker.h takes, and its
// errors to exceptions.
//
// Lifecycle: made by Init() in drivers and by WorkerMain() in workers. References may outlive it;
// using them then throws. Any thread may call.
#pragma once

#include <atomic>
#include <optional>
#include <unordered_map>

#include "common/base/mutex.h"
#include "launch/node/launch.h"
#include "runtime.h"
#include "worker/worker.h"

namespace ray::internal {

// Key of JobConfig.metadata; its value is "detached" when actors are detached by default.
inline constexpr char kDefaultLifetimeKey[] = "default_actor_lifetime";

class ClusterRuntime final : public Runtime {
 public:
  struct Options {
    bool detached_actors = false;
    std::string ray_namespace;
    bool prints_output = false;  // This driver prints its workers' output.
    // The private cluster, which ends with this object.
    std::optional<rt::launch::StartedNode> node;
  };
  ClusterRuntime(std::unique_ptr<rt::worker::Worker> worker, Options options);
  ~ClusterRuntime() override;

  void Stop() override;

  bool IsLocal() const override { return false; }
  std::string Namespace() const override;
  ObjectPtr Put(EncodedValue value) override;
  std::vector<StoredValue> Get(const std::vector<ObjectPtr>& objects, int timeout_ms) override;
  std::vector<bool> Wait(const std::vector<ObjectPtr>& objects, int num_objects,
                         int timeout_ms) override;
  ObjectPtr FindObject(const std::string& id) override;
  ObjectPtr CallFunction(const std::string& function, const CallOptions& options,
                         std::vector<CallArg> args) override;
  ActorPtr CreateActor(const std::string& factory, const ActorOptions& options,
                       std::vector<CallArg> args) override;
  ObjectPtr CallMethod(const ActorPtr& actor, const std::string& method, const CallOptions& options,
                       std::vector<CallArg> args) override;
  void KillActor(const ActorPtr& actor, bool no_restart) override;
  ActorPtr GetActor(const std::string& name, const std::string& ray_namespace) override;
  ActorPtr FindActor(const std::string& id) override;
  GroupRecord CreateGroup(GroupRecord group) override;
  void RemoveGroup(const std::string& id) override;
  bool WaitForGroup(const std::string& id, int timeout_s) override;
  std::vector<GroupRecord> Groups() override;
  GroupRecord FindGroup(const std::string& id) override;
  GroupRecord FindNamedGroup(const std::string& name) override;
  bool InActor() const override;
  bool WasCurrentActorRestarted() const override;

  rt::worker::Worker& worker() { return *worker_; }
  // The counted references packed in `value`.
  std::vector<rt::worker::Ref> refs_in(const EncodedValue& value) const;
  void set_detached_actors(bool detached) { options_.detached_actors = detached; }

 private:
  class PackedArgs;
  const rt::worker::Ref& ref_of(const ObjectPtr& object) const;
  const rt::worker::Actor& actor_of(const ActorPtr& actor) const;
  ObjectPtr object_of(rt::worker::Ref ref) const;
  std::vector<rt::worker::Ref> refs_of(const std::vector<ObjectPtr>& objects) const;
  const rt::worker::Template* template_for(const std::string& text, bool method,
                                           const CallOptions& options);

  void throw_if_stopped() const;

  // Tells this runtime's references from those of an earlier one, which may have had its address.
  const uint64_t generation_;
  std::atomic<bool> stopped_{false};
  std::unique_ptr<rt::worker::Worker> worker_;
  Options options_;
  rt::Mutex mutex_;
  std::unordered_map<std::string, const rt::worker::Template*> templates_ GUARDED_BY(mutex_);
};

// Makes the view of a value that Decode() reads; `keepalive` pins it. Throws for kinds that C++
// cannot read, and throws stored errors.
StoredValue stored_value(const rt::worker::Value& value, std::shared_ptr<const void> keepalive);

}  // namespace ray::internal
