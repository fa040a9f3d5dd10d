#include "worker/worker.h"

#include "worker/core/death.h"
#include "worker/core/spec_size.h"
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
  return impl_->gets.wait_all(refs, deadline_us, since_us);
}

void Worker::errors_seen(std::span<const Ref> refs) { impl_->gets.errors_seen(refs); }

size_t Worker::first_failed(std::span<const Ref> refs, int64_t since_us) {
  return impl_->gets.first_failed(refs, since_us);
}

Waited Worker::wait_some(std::span<const Ref> refs, size_t count, int64_t deadline_us,
                         int64_t since_us, bool fetch_local, std::vector<bool>* ready) {
  return impl_->gets.wait_some(refs, count, deadline_us, since_us, fetch_local, ready);
}

Result<std::vector<Worker::Where>> Worker::locate(std::span<const Ref> refs, bool ask_owners,
                                                  int64_t deadline_us) {
  return impl_->gets.locate(refs, ask_owners, deadline_us);
}

bool Worker::on_ready(const Ref& ref, std::function<void()> callback) {
  return impl_->gets.on_ready(ref, std::move(callback));
}

Ref Worker::find(const ObjectId& id) {
  WorkerLock lock(impl_->shared.mutex);
  return Ref(impl_->objects.refs().find(id));
}

std::string Worker::pack_ref(const Ref& ref) { return impl_->travelling_refs.pack(ref); }

Result<Ref> Worker::unpack_ref(std::string_view packed) {
  return impl_->travelling_refs.unpack(packed);
}

proto::WorkerAddress Worker::owner_of(const Ref& ref) const {
  WorkerLock lock(impl_->shared.mutex);
  return impl_->objects.owner_of(entry_of(ref));
}

Result<const Template*> Worker::make_template(proto::TaskTemplate spec) {
  if (Status small = check_spec_size(spec.ByteSizeLong(), "a task"); !small) return small.error();
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

Result<Actor> Worker::create_actor(ActorOptions options, std::span<const Arg> args,
                                   std::optional<proto::ActorInfo>* existing) {
  return impl_->actor_client.create(std::move(options), args, existing);
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
  return impl_->execution.departure().leaving().is_graceful();
}

const ExecutingTask* Worker::current_task() const { return t_current_task; }

}  // namespace rt::worker
