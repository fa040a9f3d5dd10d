// Local mode: everything runs in threads of this process, through the same registered functions
// and the same encoded values as in a cluster.
//
// Any thread may call. The runtime, references and running calls share LocalState, so that they
// may be destroyed in any order. Its mutex guards the results of objects and the actors;
// `tables` is a leaf lock of its own for the tables, taken when references are dropped.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <unordered_map>

#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "local_executor.h"
#include "ray/api/registry.h"
#include "runtime.h"

namespace ray::internal {

class LocalObject;
class LocalActorRecord;

// Stands for the mutex of the state that the code is about: each part reaches the same mutex by
// another path, which a compiler cannot see. Nothing handles two states at a time.
class CAPABILITY("mutex") LocalMutexRole {};
inline constexpr LocalMutexRole local_mutex;

class LocalState {
 public:
  rt::Mutex& mutex() RETURN_CAPABILITY(local_mutex) { return mutex_; }

  rt::CondVar changed;
  bool stopping GUARDED_BY(local_mutex) = false;
  int active GUARDED_BY(local_mutex) = 0;  // The number of calls that are running.

  rt::Mutex tables;
  std::unordered_map<std::string, std::weak_ptr<const LocalObject>> objects GUARDED_BY(tables);
  std::unordered_map<std::string, std::weak_ptr<const LocalActorRecord>> actors GUARDED_BY(tables);
  // (namespace, name) -> actor id
  std::map<std::pair<std::string, std::string>, std::string> names GUARDED_BY(tables);
  rt::Rng rng GUARDED_BY(tables) = rt::Rng::from_system();

 private:
  rt::Mutex mutex_;
};

class LocalObject final : public ObjectRecord {
 public:
  LocalObject(std::string id, std::shared_ptr<LocalState> state)
      : ObjectRecord(std::move(id)), state_(std::move(state)) {}
  ~LocalObject() override;

  // Store the result and start what waits for it. Exactly one of the two is called, and only once.
  void set_value(EncodedValue value) const;
  void set_error(std::exception_ptr error) const;
  bool belongs_to(const LocalState* state) const { return state_.get() == state; }
  bool ready() const REQUIRES(local_mutex) { return ready_; }
  const std::exception_ptr& error() const REQUIRES(local_mutex) { return error_; }
  StoredValue stored() const REQUIRES(local_mutex);
  void on_ready(std::function<void()> callback) const REQUIRES(local_mutex) {
    waiters_.push_back(std::move(callback));
  }

 private:
  void finish(std::shared_ptr<const EncodedValue> value, std::exception_ptr error) const;

  const std::shared_ptr<LocalState> state_;
  mutable bool ready_ GUARDED_BY(local_mutex) = false;
  mutable std::shared_ptr<const EncodedValue> value_ GUARDED_BY(local_mutex);
  mutable std::exception_ptr error_ GUARDED_BY(local_mutex);
  mutable std::vector<std::function<void()>> waiters_ GUARDED_BY(local_mutex);
};

// An actor: its object, its threads, and how it ended.
struct LocalActor {
  // Set before other threads know the actor.
  std::string id, factory, name, ray_namespace;
  std::vector<CallArg> args;  // Kept for restarts.
  int max_restarts = 0, max_concurrency = 1;

  int restarts GUARDED_BY(local_mutex) = 0;
  // Calls made before a kill do not run after it.
  int64_t epoch GUARDED_BY(local_mutex) = 0;
  bool dead GUARDED_BY(local_mutex) = false;
  std::string death GUARDED_BY(local_mutex);
  std::shared_ptr<ActorInstance> instance GUARDED_BY(local_mutex);
  LocalExecutor executor{1, false};  // Has a lock of its own.
};

// A counted handle: destroying the last one ends the actor after the calls that were already made.
class LocalActorRecord final : public ActorRecord {
 public:
  LocalActorRecord(std::shared_ptr<LocalActor> actor, std::shared_ptr<LocalState> state)
      : ActorRecord(actor->id), actor_(std::move(actor)), state_(std::move(state)) {}
  ~LocalActorRecord() override;
  const std::shared_ptr<LocalActor>& actor() const { return actor_; }
  bool belongs_to(const LocalState* state) const { return state_.get() == state; }

 private:
  const std::shared_ptr<LocalActor> actor_;
  const std::shared_ptr<LocalState> state_;
};

class LocalRuntime final : public Runtime {
 public:
  explicit LocalRuntime(const InitOptions& options);
  ~LocalRuntime() override { Stop(); }

  // Waits a bounded time for running calls; queued ones fail.
  void Stop() override;

  bool IsLocal() const override { return true; }
  std::string Namespace() const override { return ray_namespace_; }
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
  // There are no nodes to place anything on: all of these throw.
  GroupRecord CreateGroup(GroupRecord group) override;
  void RemoveGroup(const std::string& id) override;
  bool WaitForGroup(const std::string& id, int timeout_s) override;
  std::vector<GroupRecord> Groups() override;
  GroupRecord FindGroup(const std::string& id) override;
  GroupRecord FindNamedGroup(const std::string& name) override;
  bool InActor() const override;
  bool WasCurrentActorRestarted() const override;

 private:
  std::shared_ptr<const LocalObject> new_object();
  // All three throw RayException for references from before a Shutdown().
  void check(const std::vector<ObjectPtr>& objects) const;
  void check(const std::vector<CallArg>& args) const;
  const std::shared_ptr<LocalActor>& own(const ActorPtr& actor) const;
  // Returns the actor that was last given this name, which may be dead, or null. The caller drops
  // the result without holding a lock.
  std::shared_ptr<const LocalActorRecord> find_named(const std::string& name,
                                                     const std::string& ray_namespace) const
      REQUIRES(state_->tables);

  const std::shared_ptr<LocalState> state_;
  const std::shared_ptr<LocalExecutor> tasks_;
  const std::string ray_namespace_;
  const bool detached_;
  std::vector<ActorPtr> detached_actors_ GUARDED_BY(local_mutex);
};

}  // namespace ray::internal
