#include "local_runtime.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "common/base/ids.h"
#include "invoke.h"

namespace ray::internal {
namespace {

constexpr auto kShutdownWait = std::chrono::seconds(5);  // For calls that run at Shutdown().
constexpr int kMinThreads = 4;
const char kShutDown[] = "ray::Shutdown() was called";

const LocalObject& local(const ObjectPtr& object) {
  return static_cast<const LocalObject&>(*object);
}

// The first line of a lambda that wait_until() calls.
void assert_locked() ASSERT_CAPABILITY(local_mutex) {}

bool all_ready(const std::vector<CallArg>& args) REQUIRES(local_mutex) {
  for (const CallArg& arg : args) {
    if (arg.ref && !local(arg.ref).ready()) return false;
  }
  return true;
}

// Waits on the state's condition variable until done() or the timeout (none when timeout_ms is
// negative). Returns false on timeout; throws when Shutdown() was called.
template <class Done>
bool wait_until(LocalState& state, int timeout_ms, Done done) REQUIRES(local_mutex) {
  if (!done() && !state.stopping) {
    LocalExecutor::Waiting waiting;
    const auto deadline = rt::CondVar::Clock::now() + std::chrono::milliseconds(timeout_ms);
    for (bool in_time = true; !done() && !state.stopping;) {
      if (!in_time) return false;
      if (timeout_ms < 0) {
        state.changed.wait(state.mutex());
      } else {
        in_time = state.changed.wait_until(state.mutex(), deadline);
      }
    }
  }
  if (!done() && state.stopping) throw RayException(kShutDown);
  return true;
}

[[noreturn]] void refuse_groups() {
  throw RayException("Placement groups need a cluster: this program runs in local mode.");
}

// Refuses calls that only a cluster can run.
void check_options(const CallOptions& options) {
  if (options.python)
    throw RayException("Local mode runs C++ only: Python functions and actors need a cluster.");
  if (!options.group.id.empty()) refuse_groups();
}

// Shutdown() waits while one exists, because user code, destructors included, is running.
class Active {
 public:
  explicit Active(std::shared_ptr<LocalState> state) : state_(std::move(state)) {
    rt::MutexLock lock(state_->mutex());
    ++state_->active;
  }
  ~Active() {
    {
      rt::MutexLock lock(state_->mutex());
      --state_->active;
    }
    state_->changed.notify_all();
  }
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;

 private:
  const std::shared_ptr<LocalState> state_;
};

// Collects the values of the arguments, which must be ready. If one of them is an error, returns
// the first such error.
std::exception_ptr resolve(const std::vector<CallArg>& args, LocalState& state, Arguments* values) {
  rt::MutexLock lock(state.mutex());
  for (const CallArg& arg : args) {
    if (!arg.ref) {
      values->push_back({arg.value.is_void ? ValueFormat::kNone : ValueFormat::kMsgpack,
                         arg.value.bytes.data(), arg.value.bytes.size(), nullptr});
      continue;
    }
    const LocalObject& object = local(arg.ref);
    if (object.error()) return object.error();
    values->push_back(object.stored());
  }
  return nullptr;
}

// Runs one call and stores its result, which is then no longer in the outcome.
CallOutcome run(LocalState& state, const std::string& function, ActorInstance* self,
                const std::vector<CallArg>& args, const CallContext& context,
                const LocalObject* result) {
  Arguments values;
  if (std::exception_ptr error = resolve(args, state, &values)) {
    if (result) result->set_error(error);
    return {{}, CallFailure{"RayException", "an argument is an error"}};
  }
  CallOutcome out = run_call(*Registry::Instance().Find(function), self, values, context);
  if (result && !out.failure) result->set_value(std::move(out.result.value));
  if (result && out.failure && !out.failure->exit_actor)
    result->set_error(
        std::make_exception_ptr(RayTaskException(describe_failure(function, *out.failure))));
  return out;
}

std::exception_ptr actor_error(const LocalActor& actor) REQUIRES(local_mutex) {
  return std::make_exception_ptr(RayActorException(
      fmt::format("The actor of {} died: {}.", class_of_factory(actor.factory), actor.death)));
}

// The object is destroyed when its last running call ends.
void end_actor(LocalActor& actor, const std::string& why, std::shared_ptr<ActorInstance>* drop)
    REQUIRES(local_mutex) {
  if (actor.dead) return;
  actor.dead = true;
  actor.death = why;
  ++actor.epoch;
  *drop = std::move(actor.instance);
}

// Runs the factory: the first job of an actor's thread, and the first after each restart.
void construct(const std::shared_ptr<LocalState>& state, const std::shared_ptr<LocalActor>& actor,
               int64_t epoch) {
  Active active(state);
  std::shared_ptr<ActorInstance> instance, drop;
  rt::MutexLock lock(state->mutex());
  while (!all_ready(actor->args) && !state->stopping && actor->epoch == epoch)
    state->changed.wait(state->mutex());
  if (state->stopping || actor->epoch != epoch) return;
  CallContext context{true, actor->restarts > 0};
  lock.unlock();
  CallOutcome out = run(*state, actor->factory, nullptr, actor->args, context, nullptr);
  instance = std::move(out.result.instance);
  lock.lock();
  if (actor->epoch != epoch) return;  // The actor was killed meanwhile.
  if (out.failure) {
    end_actor(*actor, "its factory failed: " + describe_failure(actor->factory, *out.failure),
              &drop);
  } else {
    actor->instance = std::move(instance);
    actor->executor.set_limit(actor->max_concurrency);
  }
}

// Runs one method call when its turn has come.
void run_method(const std::shared_ptr<LocalState>& state, const std::shared_ptr<LocalActor>& actor,
                int64_t epoch, const std::string& method, const std::vector<CallArg>& args,
                const LocalObject& result) {
  Active active(state);
  std::shared_ptr<ActorInstance> instance, drop;
  rt::MutexLock lock(state->mutex());
  while (!all_ready(args) && !state->stopping && actor->epoch == epoch)
    state->changed.wait(state->mutex());
  if (state->stopping) {
    lock.unlock();
    return result.set_error(std::make_exception_ptr(RayException(kShutDown)));
  }
  if (actor->epoch != epoch) {
    std::exception_ptr error =
        actor->dead
            ? actor_error(*actor)
            : std::make_exception_ptr(RayActorException("The actor was killed and is restarted."));
    lock.unlock();
    return result.set_error(error);
  }
  instance = actor->instance;
  CallContext context{true, actor->restarts > 0};
  lock.unlock();
  const CallOutcome out = run(*state, method, instance.get(), args, context, &result);
  if (!out.failure || !out.failure->exit_actor) return;
  lock.lock();
  end_actor(*actor, "it called ray::ExitActor()", &drop);
  std::exception_ptr error = actor_error(*actor);
  lock.unlock();
  state->changed.notify_all();
  result.set_error(error);
}

}  // namespace

LocalObject::~LocalObject() {
  rt::MutexLock lock(state_->tables);
  state_->objects.erase(id());
}

void LocalObject::finish(std::shared_ptr<const EncodedValue> value,
                         std::exception_ptr error) const {
  std::vector<std::function<void()>> waiters;
  {
    rt::MutexLock lock(state_->mutex());
    value_ = std::move(value);
    error_ = std::move(error);
    ready_ = true;
    waiters.swap(waiters_);
  }
  state_->changed.notify_all();
  for (auto& waiter : waiters) waiter();
}

void LocalObject::set_value(EncodedValue value) const {
  finish(std::make_shared<EncodedValue>(std::move(value)), nullptr);
}

void LocalObject::set_error(std::exception_ptr error) const { finish(nullptr, std::move(error)); }

StoredValue LocalObject::stored() const {
  return {value_->is_void ? ValueFormat::kNone : ValueFormat::kMsgpack, value_->bytes.data(),
          value_->bytes.size(), value_};
}

LocalActorRecord::~LocalActorRecord() {
  {
    rt::MutexLock lock(state_->tables);
    state_->actors.erase(id());
    auto name = state_->names.find({actor_->ray_namespace, actor_->name});
    if (name != state_->names.end() && name->second == id()) state_->names.erase(name);
  }
  // The actor ends after the calls that were already made. The job keeps it alive until then.
  actor_->executor.submit(
      [active = std::make_shared<Active>(state_), state = state_, actor = actor_] {
        std::shared_ptr<ActorInstance> drop;
        rt::MutexLock lock(state->mutex());
        end_actor(*actor, "its last handle is gone", &drop);
      });
}

LocalRuntime::LocalRuntime(const InitOptions& options)
    : state_(std::make_shared<LocalState>()),
      tasks_(std::make_shared<LocalExecutor>(
          std::max<int>(kMinThreads, static_cast<int>(std::thread::hardware_concurrency())), true)),
      ray_namespace_(options.ray_namespace),
      detached_(options.detached_actors) {}

void LocalRuntime::Stop() {
  // Dropping the last reference to a record takes the mutex, so it happens without it.
  std::vector<ActorPtr> detached;
  {
    rt::MutexLock lock(state_->mutex());
    if (state_->stopping) return;
    detached.swap(detached_actors_);
  }
  detached.clear();
  // Handles that outlive the runtime.
  std::vector<std::shared_ptr<const LocalActorRecord>> actors;
  {
    rt::MutexLock lock(state_->tables);
    for (const auto& [id, record] : state_->actors) actors.push_back(record.lock());
  }
  std::vector<std::shared_ptr<ActorInstance>> drops(actors.size());
  rt::MutexLock lock(state_->mutex());
  for (size_t i = 0; i < actors.size(); ++i) {
    if (actors[i]) end_actor(*actors[i]->actor(), kShutDown, &drops[i]);
  }
  state_->stopping = true;
  state_->changed.notify_all();
  lock.unlock();
  drops.clear();
  actors.clear();
  lock.lock();
  const auto deadline = rt::CondVar::Clock::now() + kShutdownWait;
  while (state_->active > 0 && state_->changed.wait_until(state_->mutex(), deadline)) {}
}

std::shared_ptr<const LocalObject> LocalRuntime::new_object() {
  rt::MutexLock lock(state_->tables);
  auto object =
      std::make_shared<const LocalObject>(rt::ObjectId::random(state_->rng).binary(), state_);
  state_->objects[object->id()] = object;
  return object;
}

void LocalRuntime::check(const std::vector<ObjectPtr>& objects) const {
  for (const ObjectPtr& object : objects) {
    auto* known = dynamic_cast<const LocalObject*>(object.get());
    if (!known || !known->belongs_to(state_.get()))
      throw RayException("A reference from before ray::Shutdown() was used.");
  }
}

void LocalRuntime::check(const std::vector<CallArg>& args) const {
  for (const CallArg& arg : args) {
    if (arg.ref) check(std::vector<ObjectPtr>{arg.ref});
    check(arg.value.objects);
  }
}

const std::shared_ptr<LocalActor>& LocalRuntime::own(const ActorPtr& actor) const {
  auto* known = dynamic_cast<const LocalActorRecord*>(actor.get());
  if (!known || !known->belongs_to(state_.get()))
    throw RayException("An actor handle from before ray::Shutdown() was used.");
  return known->actor();
}

ObjectPtr LocalRuntime::Put(EncodedValue value) {
  auto object = new_object();
  object->set_value(std::move(value));
  return object;
}

std::vector<StoredValue> LocalRuntime::Get(const std::vector<ObjectPtr>& objects, int timeout_ms) {
  check(objects);
  auto state = state_;  // The runtime may be shut down during the wait.
  rt::MutexLock lock(state->mutex());
  size_t missing = 0;
  auto count_missing = [&] {
    assert_locked();
    missing = 0;
    for (const ObjectPtr& object : objects) missing += local(object).ready() ? 0 : 1;
    return missing == 0;
  };
  if (!wait_until(*state, timeout_ms, count_missing)) {
    throw RayTimeoutException(
        fmt::format("Get timed out: {} of {} objects are not ready after {} ms.", missing,
                    objects.size(), timeout_ms));
  }
  std::vector<StoredValue> values;
  values.reserve(objects.size());
  for (const ObjectPtr& object : objects) {
    if (std::exception_ptr error = local(object).error()) {
      lock.unlock();
      std::rethrow_exception(error);
    }
    values.push_back(local(object).stored());
  }
  return values;
}

std::vector<bool> LocalRuntime::Wait(const std::vector<ObjectPtr>& objects, int num_objects,
                                     int timeout_ms) {
  if (num_objects < 0 || num_objects > static_cast<int>(objects.size()))
    throw RayException(fmt::format("Wait: num_objects is {}, but there are {} objects.",
                                   num_objects, objects.size()));
  check(objects);
  auto state = state_;
  rt::MutexLock lock(state->mutex());
  std::vector<bool> flags(objects.size());
  wait_until(*state, timeout_ms, [&] {
    assert_locked();
    int count = 0;
    for (size_t i = 0; i < objects.size(); ++i) {
      flags[i] = count < num_objects && local(objects[i]).ready();
      count += flags[i];
    }
    return count == num_objects;
  });
  return flags;
}

ObjectPtr LocalRuntime::FindObject(const std::string& id) {
  rt::MutexLock lock(state_->tables);
  auto it = state_->objects.find(id);
  std::shared_ptr<const LocalObject> object =
      it == state_->objects.end() ? nullptr : it->second.lock();
  if (!object)
    throw RayException(fmt::format("Object {} is not known to this process.", rt::to_hex(id)));
  return object;
}

ObjectPtr LocalRuntime::CallFunction(const std::string& function, const CallOptions& options,
                                     std::vector<CallArg> args) {
  check_options(options);
  check(args);
  auto result = new_object();
  auto call = std::make_shared<const std::vector<CallArg>>(std::move(args));
  auto job = [state = state_, function, call, result] {
    {
      rt::MutexLock lock(state->mutex());
      if (state->stopping) {
        lock.unlock();
        return result->set_error(std::make_exception_ptr(RayException(kShutDown)));
      }
    }
    Active active(state);
    run(*state, function, nullptr, *call, CallContext{}, result.get());
  };
  // A task that waits for arguments occupies no thread: the last argument to become ready starts
  // it.
  auto unready = std::make_shared<std::atomic<int>>(1);
  auto step = [unready, tasks = tasks_, job] {
    if (unready->fetch_sub(1) == 1) tasks->submit(job);
  };
  {
    rt::MutexLock lock(state_->mutex());
    for (const CallArg& arg : *call) {
      if (!arg.ref || local(arg.ref).ready()) continue;
      unready->fetch_add(1);
      local(arg.ref).on_ready(step);
    }
  }
  step();
  return result;
}

ActorPtr LocalRuntime::CreateActor(const std::string& factory, const ActorOptions& options,
                                   std::vector<CallArg> args) {
  check_options(options.call);
  if (options.max_concurrency < 1) throw RayException("SetMaxConcurrency needs 1 or more.");
  if (options.max_restarts < -1)
    throw RayException("SetMaxRestarts needs 0 or more, or -1 for no limit.");
  check(args);
  auto actor = std::make_shared<LocalActor>();
  actor->factory = factory;
  actor->name = options.call.name;
  actor->ray_namespace = options.ray_namespace.empty() ? ray_namespace_ : options.ray_namespace;
  actor->args = std::move(args);
  actor->max_restarts = options.max_restarts;
  actor->max_concurrency = options.max_concurrency;
  // Dropping the last reference to a record takes both locks, so `named` outlives them.
  std::shared_ptr<const LocalActorRecord> record, named;
  {
    rt::MutexLock lock(state_->mutex());
    rt::MutexLock tables(state_->tables);
    if (!actor->name.empty()) named = find_named(actor->name, actor->ray_namespace);
    if (named && !named->actor()->dead)
      throw RayException(fmt::format("The actor name {} is taken in namespace {}.", actor->name,
                                     actor->ray_namespace));
    actor->id = rt::ActorId::random(state_->rng).binary();
    record = std::make_shared<const LocalActorRecord>(actor, state_);
    state_->actors[actor->id] = record;
    if (!actor->name.empty()) state_->names[{actor->ray_namespace, actor->name}] = actor->id;
    if (detached_) detached_actors_.push_back(record);
  }
  actor->executor.submit([state = state_, actor] { construct(state, actor, 0); });
  return record;
}

ObjectPtr LocalRuntime::CallMethod(const ActorPtr& handle, const std::string& method,
                                   const CallOptions&, std::vector<CallArg> args) {
  const auto& actor = own(handle);
  check(args);
  auto result = new_object();
  rt::MutexLock lock(state_->mutex());
  if (actor->dead) {
    std::exception_ptr error = actor_error(*actor);
    lock.unlock();
    result->set_error(error);
    return result;
  }
  int64_t epoch = actor->epoch;
  auto call = std::make_shared<const std::vector<CallArg>>(std::move(args));
  // The job holds `handle`, because a call in progress keeps its actor alive.
  actor->executor.submit([state = state_, actor, epoch, method, call, result, handle] {
    run_method(state, actor, epoch, method, *call, *result);
  });
  return result;
}

void LocalRuntime::KillActor(const ActorPtr& handle, bool no_restart) {
  const auto& actor = own(handle);
  std::shared_ptr<ActorInstance> drop;
  {
    rt::MutexLock lock(state_->mutex());
    if (actor->dead) return;
    if (no_restart || (actor->max_restarts >= 0 && actor->restarts >= actor->max_restarts)) {
      end_actor(*actor, "it was killed", &drop);
    } else {
      int64_t epoch = ++actor->epoch;
      ++actor->restarts;
      drop = std::move(actor->instance);
      actor->executor.set_limit(1);
      actor->executor.submit([state = state_, actor, epoch] { construct(state, actor, epoch); });
    }
  }
  state_->changed.notify_all();
}

std::shared_ptr<const LocalActorRecord> LocalRuntime::find_named(
    const std::string& name, const std::string& ray_namespace) const {
  auto id = state_->names.find({ray_namespace, name});
  if (id == state_->names.end()) return nullptr;
  auto it = state_->actors.find(id->second);
  return it == state_->actors.end() ? nullptr : it->second.lock();
}

ActorPtr LocalRuntime::GetActor(const std::string& name, const std::string& ray_namespace) {
  std::shared_ptr<const LocalActorRecord> record;
  {
    rt::MutexLock lock(state_->tables);
    record = find_named(name, ray_namespace.empty() ? ray_namespace_ : ray_namespace);
  }
  if (!record) return nullptr;
  rt::MutexLock lock(state_->mutex());
  return record->actor()->dead ? nullptr : record;
}

ActorPtr LocalRuntime::FindActor(const std::string& id) {
  rt::MutexLock lock(state_->tables);
  auto it = state_->actors.find(id);
  std::shared_ptr<const LocalActorRecord> record =
      it == state_->actors.end() ? nullptr : it->second.lock();
  if (!record)
    throw RayException(fmt::format("Actor {} is not known to this process.", rt::to_hex(id)));
  return record;
}

GroupRecord LocalRuntime::CreateGroup(GroupRecord) { refuse_groups(); }
void LocalRuntime::RemoveGroup(const std::string&) { refuse_groups(); }
bool LocalRuntime::WaitForGroup(const std::string&, int) { refuse_groups(); }
std::vector<GroupRecord> LocalRuntime::Groups() { refuse_groups(); }
GroupRecord LocalRuntime::FindGroup(const std::string&) { refuse_groups(); }
GroupRecord LocalRuntime::FindNamedGroup(const std::string&) { refuse_groups(); }

bool LocalRuntime::InActor() const { return current_call() && current_call()->in_actor; }
bool LocalRuntime::WasCurrentActorRestarted() const {
  return current_call() && current_call()->restarted;
}

std::unique_ptr<Runtime> make_local_runtime(const InitOptions& options) {
  return std::make_unique<LocalRuntime>(options);
}

}  // namespace ray::internal
