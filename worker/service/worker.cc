#include "worker/worker.h"

#include "worker/core/death.h"
#include "worker/service/executing_task.h"
#include "worker/service/impl.h"

namespace rt::worker {

namespace {

// Refs that outlive a worker still point to its table and entries. The table is kept until those
// refs are gone, which is checked whenever another worker of this process ends.
void retire(std::unique_ptr<RefTable> table) {
  static Mutex mutex;
  static auto& retired = *new std::vector<std::unique_ptr<RefTable>>;
  MutexLock lock(mutex);
  std::erase_if(retired, [](const auto& old) { return old->is_unreferenced(); });
  retired.push_back(std::move(table));
}

bool any_awaited(std::span<const Ref> refs, const NodeId& node) {
  return std::any_of(refs.begin(), refs.end(),
                     [&](const Ref& ref) { return entry_of(ref).is_awaited_on(node); });
}

// How long a get waits for values on this node when its deadline has passed: a deadline of now
// means to look, which takes an answer of the store.
constexpr int64_t kLookUs = 1'000'000;

// The index of the first ref whose value is an error or could not be fetched; refs.size() if
// there is none.
size_t failed_index(std::span<const Ref> refs, int64_t since_us) REQUIRES(worker_mutex) {
  for (size_t i = 0; i < refs.size(); ++i) {
    auto& entry = entry_of(refs[i]);
    if (!entry.ready.load(std::memory_order_acquire)) continue;
    if (entry.state == ObjectState::kInMemory ? is_error(entry.blob.bytes())
                                              : entry.fetch_failed_since(since_us))
      return i;
  }
  return refs.size();
}

}  // namespace

Worker::Worker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Worker>> Worker::start(Options options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  if (Status started = impl->start(); !started) {
    impl->stop();
    return started.error();
  }
  return std::unique_ptr<Worker>(new Worker(std::move(impl)));
}

Worker::~Worker() {
  stop();
  impl_->objects.refs().replace_values(copy_blob(
      as_bytes(encode_error(system_error(Code::kInvalid,
                                         "this ObjectRef belongs to a session that was shut down, "
                                         "and its value ended with it: make the object again")))));
  retire(impl_->objects.take_table());
}

void Worker::stop() { impl_->stop(); }

Context Worker::context() const {
  WorkerLock lock(impl_->shared.mutex);
  return impl_->shared.context;
}
bool Worker::is_connected() const { return impl_->nodes.is_registered(); }
bool Worker::profiles() const { return impl_->recorder.profiles(); }

void Worker::record_span(const std::string& type, int64_t start_us, int64_t end_us,
                         const std::string& extra) {
  WorkerLock lock(impl_->shared.mutex);
  if (impl_->shared.context.job_id.is_nil()) return;
  const TaskId task = submitting_task();
  const ExecutingTaskImpl* running = impl_->execution.running();
  while (running && running->id() != task) running = running->next();
  // Without a task the span belongs to the driver itself, or to a thread outside of any task.
  impl_->recorder.span(task.is_nil() ? impl_->shared.self.put_task() : task, running, type,
                       start_us, end_us, extra);
}

Result<Ref> Worker::put(const ValueParts& value) { return impl_->objects.put(value); }
Result<Ref> Worker::put_once(const ValueParts& value) { return impl_->objects.put_once(value); }
Result<Value> Worker::value_of(const Ref& ref, int64_t since_us) {
  return impl_->objects.value_of(ref, since_us);
}

Waited Worker::wait_all(std::span<const Ref> refs, int64_t deadline_us, int64_t since_us) {
  size_t next = 0;
  auto at_hand = [&](const Ref& ref) { return ref.entry()->ready.load(std::memory_order_acquire); };
  // Values in memory need neither the lock nor a turn of the loop.
  bool all_in_memory = true;
  for (const Ref& ref : refs) {
    auto& entry = entry_of(ref);
    if (!at_hand(ref) || entry.state != ObjectState::kInMemory) {
      all_in_memory = false;
      break;
    }
  }
  if (all_in_memory) return Waited::kDone;
  WorkerLock lock(impl_->shared.mutex);
  for (const Ref& ref : refs) {
    auto& entry = entry_of(ref);
    impl_->objects.resolve(entry);
    impl_->objects.fetch(entry, since_us, Fetch::kView);
  }
  uint64_t errors_seen = 0;
  bool failed = false;
  auto all_local = [&] {
    assert_locked();
    for (; next < refs.size(); ++next) {
      auto& entry = entry_of(refs[next]);
      if (!at_hand(refs[next])) return false;
      if (!impl_->objects.is_local(entry)) {
        impl_->objects.fetch(entry, since_us, Fetch::kView);
        return false;
      }
    }
    return true;
  };
  auto done = [&] {
    assert_locked();
    if (impl_->shared.stopping || all_local()) return true;
    // The refs are searched for errors only when this process has stored new ones.
    if (errors_seen == impl_->objects.errors_stored()) return false;
    errors_seen = impl_->objects.errors_stored();
    return failed = failed_index(refs, since_us) < refs.size();
  };
  auto awaited = [&] { return any_awaited(refs, impl_->shared.context.node_id); };
  Waited result = impl_->pump.wait_until(lock, deadline_us, done, awaited);
  if (result == Waited::kTimeout && !awaited())
    result = impl_->pump.wait_until(lock, deadline_us + kLookUs, done, awaited);
  if (result != Waited::kDone || failed) impl_->objects.let_go(refs);
  return failed && result == Waited::kDone ? Waited::kFailed : result;
}

void Worker::errors_seen(std::span<const Ref> refs) {
  if (impl_->objects.errors_stored() == 0) return;
  for (const Ref& ref : refs) {
    const auto& entry = entry_of(ref);
    if (entry.ready.load(std::memory_order_acquire))
      entry.unseen_error.store(false, std::memory_order_relaxed);
  }
}

size_t Worker::first_failed(std::span<const Ref> refs, int64_t since_us) {
  WorkerLock lock(impl_->shared.mutex);
  return failed_index(refs, since_us);
}

Waited Worker::wait_some(std::span<const Ref> refs, size_t count, int64_t deadline_us,
                         int64_t since_us, bool fetch_local, std::vector<bool>* ready) {
  ready->assign(refs.size(), false);
  size_t found = 0;
  // Without the mutex only whether a value exists, and is in memory, can be told.
  auto exists = [&](const ObjectEntry& entry) {
    return entry.ready.load(std::memory_order_acquire) &&
           (!fetch_local || entry.state == ObjectState::kInMemory);
  };
  auto is_settled = [&](const ObjectEntry& entry) {
    assert_locked();
    if (!entry.ready) return false;
    // After a failed fetch the value exists elsewhere, and waiting longer does not bring it here.
    return impl_->objects.is_local(entry) || entry.is_on(impl_->shared.context.node_id) ||
           entry.fetch_failed_since(since_us);
  };
  auto scan = [&](bool locked) {
    for (size_t i = 0; i < refs.size() && found < count; ++i) {
      if ((*ready)[i]) continue;
      const auto& entry = entry_of(refs[i]);
      if (!exists(entry) && !(locked && is_settled(entry))) continue;
      (*ready)[i] = true;
      ++found;
    }
    return found >= count;
  };
  auto all_in_memory = [&] {
    for (const Ref& ref : refs) {
      auto& entry = entry_of(ref);
      if (entry.ready.load(std::memory_order_acquire) && entry.state != ObjectState::kInMemory)
        return false;
    }
    return true;
  };
  if (scan(false) && (!fetch_local || all_in_memory())) return Waited::kDone;
  WorkerLock lock(impl_->shared.mutex);
  for (const Ref& ref : refs) {
    auto& entry = entry_of(ref);
    impl_->objects.resolve(entry);
    if (fetch_local) impl_->objects.fetch(entry, since_us, Fetch::kCopy);
  }
  return impl_->pump.wait_until(
      lock, deadline_us,
      [&] {
        assert_locked();
        if (impl_->shared.stopping) return true;
        if (fetch_local) {
          for (const Ref& ref : refs) impl_->objects.fetch(entry_of(ref), since_us, Fetch::kCopy);
        }
        return scan(true);
      },
      [&] { return any_awaited(refs, impl_->shared.context.node_id); });
}

Result<std::vector<Worker::Where>> Worker::locate(std::span<const Ref> refs, bool ask_owners,
                                                  int64_t deadline_us) {
  struct Answers {
    std::vector<Where> found;
    size_t waiting = 0;
  };
  // Shared, because an owner may answer after the deadline.
  auto answers = std::make_shared<Answers>();
  answers->found.resize(refs.size());
  WorkerLock lock(impl_->shared.mutex);
  for (size_t i = 0; i < refs.size(); ++i) {
    auto& entry = entry_of(refs[i]);
    if (entry.ready) {
      for (const ObjectLocation& location : entry.details().locations)
        answers->found[i].nodes.push_back(location.node);
      answers->found[i].size = entry.size;
    } else if (!entry.owned && ask_owners) {
      ++answers->waiting;
      impl_->peers.with(
          *entry.details().owner, [answers, i, id = entry.id](Result<std::shared_ptr<Link>> link) {
            proto::ObjectStatusRequest request;
            request.set_object_id(id.binary());
            if (!link) {
              --answers->waiting;
              return;
            }
            rpc::call(*(*link)->connection, &proto::WorkerService::Stub::GetObject, request,
                      30'000'000, [answers, i](Result<proto::ObjectStatus> status) {
                        --answers->waiting;
                        if (!status || (status->state() != proto::ObjectStatus::READY_INLINE &&
                                        status->state() != proto::ObjectStatus::READY_IN_STORE))
                          return;
                        for (const std::string& node : status->locations())
                          answers->found[i].nodes.push_back(NodeId::from_binary(node));
                        answers->found[i].size = status->size();
                      });
          });
    }
  }
  while (answers->waiting > 0) {
    if (impl_->shared.stopping) return make_error(Code::kUnavailable, "Ray has been shut down");
    if (impl_->pump.wait_until(lock, deadline_us, [&] {
          return answers->waiting == 0 || impl_->shared.stopping;
        }) == Waited::kTimeout) {
      return make_error(Code::kTimeout,
                        "timed out while asking the owners of some objects for their locations");
    }
  }
  return answers->found;
}

bool Worker::on_ready(const Ref& ref, std::function<void()> callback) {
  auto& entry = entry_of(ref);
  WorkerLock lock(impl_->shared.mutex);
  if (entry.ready) return false;
  entry.mutable_details().waiters.push_back(std::move(callback));
  impl_->objects.resolve(entry);
  impl_->shared.loop.flush_all();
  impl_->pump.leave_wait();
  return true;
}

Ref Worker::find(const ObjectId& id) {
  WorkerLock lock(impl_->shared.mutex);
  return Ref(impl_->objects.refs().find(id));
}

std::string Worker::pack_ref(const Ref& ref) {
  WorkerLock lock(impl_->shared.mutex);
  impl_->objects.pin(ref);
  return impl_->shared.self.cluster_id() + impl_->objects.pack({&ref, 1});
}

Result<Ref> Worker::unpack_ref(std::string_view packed) {
  // Ids do not identify the cluster: the first driver's objects have the same ids in every
  // cluster.
  if (packed.size() < ClusterId::kSize)
    return make_error(Code::kInvalid, "the bytes are not a pickled ObjectRef");
  if (!packed.starts_with(impl_->shared.self.cluster_id()))
    return make_error(Code::kOwnerDied,
                      "this ObjectRef was pickled in another cluster than the one this process is "
                      "connected to: its owner is not here. Make the object again.");
  packed.remove_prefix(ClusterId::kSize);
  auto unpacked = unpack_refs(as_bytes(packed));
  if (!unpacked) return unpacked.error();
  if (unpacked->size() != 1)
    return make_error(Code::kInvalid, "the bytes are not a pickled ObjectRef");
  WorkerLock lock(impl_->shared.mutex);
  std::vector<Ref> refs = impl_->objects.take_refs(as_bytes(packed), false, true);
  impl_->shared.loop.flush_all();
  return refs.front();
}

proto::WorkerAddress Worker::owner_of(const Ref& ref) const {
  WorkerLock lock(impl_->shared.mutex);
  return impl_->objects.owner_of(entry_of(ref));
}

const Template* Worker::make_template(proto::TaskTemplate spec) {
  WorkerLock lock(impl_->shared.mutex);
  return impl_->submission.make_template(std::move(spec));
}

Status Worker::submit(const Template* function, std::span<const Arg> args,
                      std::vector<Ref>* returns) {
  return impl_->submission.submit(function, args, returns);
}

Waited Worker::next_item(const Ref& stream, int64_t deadline_us, Ref* item) {
  WorkerLock lock(impl_->shared.mutex);
  return impl_->streams.next(lock, stream, deadline_us, item);
}

Worker::ItemState Worker::peek_item(const Ref& stream, Ref* item) {
  WorkerLock lock(impl_->shared.mutex);
  return impl_->streams.peek(stream, item);
}

Status Worker::cancel(const Ref& ref, bool force, bool recursive) {
  WorkerLock lock(impl_->shared.mutex);
  const Status status = impl_->submission.cancellation().cancel(ref, force, recursive);
  impl_->shared.loop.flush_all();
  // Another thread may wait for the results that have just failed.
  impl_->pump.wake_reader();
  impl_->pump.wake_followers();
  return status;
}

void submit_for(const TaskId& parent) { t_submit_for = parent; }

Result<Actor> Worker::create_actor(ActorOptions options, std::span<const Arg> args) {
  return impl_->actor_client.create(std::move(options), args);
}

Actor Worker::actor_from(const ActorId& id, Ref handle) {
  WorkerLock lock(impl_->shared.mutex);
  impl_->actor_client.calls().link(id);
  impl_->shared.loop.flush_all();
  return Actor{id, std::move(handle)};
}

Status Worker::submit_method(const ActorId& actor, const Template* method,
                             const MethodOptions& options, std::span<const Arg> args,
                             std::vector<Ref>* returns) {
  return impl_->actor_client.submit(actor, method, options, args, returns);
}

int Worker::run(Executor& executor) { return impl_->execution.run(executor); }

void Worker::exit_actor(const std::string& why) {
  WorkerLock lock(impl_->shared.mutex);
  impl_->execution.departure().exit_actor(why);
}

void Worker::flush_before_exit() { impl_->execution.flush_before_exit(false); }

void Worker::end_by_signal() { impl_->execution.departure().end_by_signal(); }

bool Worker::leaves_by_itself() const {
  WorkerLock lock(impl_->shared.mutex);
  return impl_->execution.departure().is_graceful();
}

const ExecutingTask* Worker::current_task() const { return t_current_task; }

}  // namespace rt::worker
