// Tasks in, replies out: the executing half of a worker.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include "worker/core/death.h"
#include "worker/service/arguments.h"
#include "worker/service/executing_task.h"
#include "worker/service/fatal_signals.h"
#include "worker/service/groups.h"
#include "worker/service/impl.h"
#include "worker/service/waiting.h"

namespace rt::worker {

thread_local ExecutingTaskImpl* t_current_task = nullptr;
thread_local TaskId t_submit_for;
TaskId submitting_task() { return t_current_task ? t_current_task->id() : t_submit_for; }

ExecTemplate* Worker::Impl::exec_template(std::string_view serialized) {
  auto [it, added] = exec_templates.try_emplace(std::string(serialized));
  if (!added) return it->second.get();
  auto made = std::make_unique<ExecTemplate>();
  if (!made->spec.ParseFromArray(serialized.data(), static_cast<int>(serialized.size()))) {
    exec_templates.erase(it);
    return nullptr;
  }
  made->display = display_name(made->spec.function());
  groups->executes(made->spec);
  it->second = std::move(made);
  return it->second.get();
}

bool Worker::Impl::read_args(IncomingTask& task, wire::Reader& reader, int count,
                             std::vector<IncomingTask::Fetch>* unknown) {
  // All inline arguments share one allocation.
  std::vector<Bytes> inlined(count);
  size_t total = 0;
  for (int i = 0; i < count; ++i) {
    auto kind = reader.number<uint8_t>();
    if (kind == 0) {
      inlined[i] = reader.take(reader.number<uint32_t>());
      if (inlined[i].size() < kValueHeader) return false;
      total += (inlined[i].size() + 7) & ~size_t{7};
      continue;
    }
    if (kind != 1 && kind != 2) return false;
    const bool in_store = kind == 1;
    IncomingTask::Fetch arg;
    arg.index = static_cast<size_t>(i);
    arg.id = ObjectId::from_binary(as_view(reader.take(ObjectId::kSize)));
    if (in_store) {
      auto size = reader.number<int64_t>();
      auto locations = reader.number<uint16_t>();
      for (int l = 0; l < locations && reader.ok(); ++l) {
        store::Location location;
        location.node = NodeId::from_binary(as_view(reader.take(NodeId::kSize)));
        location.ip = std::string(as_view(reader.take(reader.number<uint16_t>())));
        location.port = reader.number<int32_t>();
        location.size = size;
        arg.locations.push_back(std::move(location));
      }
    }
    Bytes owner = reader.take(reader.number<uint16_t>());
    if (!arg.owner.ParseFromArray(owner.data(), static_cast<int>(owner.size()))) return false;
    (in_store ? task.to_fetch : *unknown).push_back(std::move(arg));
  }
  if (!reader.ok()) return false;
  std::shared_ptr<uint8_t[]> memory;
  if (total) memory = std::make_shared_for_overwrite<uint8_t[]>(total);
  size_t at = 0;
  task.args.resize(count);
  for (int i = 0; i < count; ++i) {
    if (inlined[i].empty()) continue;
    std::memcpy(memory.get() + at, inlined[i].data(), inlined[i].size());
    Bytes own{memory.get() + at, inlined[i].size()};
    at += (own.size() + 7) & ~size_t{7};
    auto decoded = decode_value(own);
    if (!decoded) return false;
    if (decoded->kind == ValueKind::kError) {
      task.failed = true;
      task.failure = std::string(as_view(own));
    }
    Value& value = task.args[i];
    value.kind = decoded->kind;
    value.inband = decoded->inband;
    value.buffers = std::move(decoded->buffers);
    value.keepalive = memory;
    if (!decoded->packed_refs.empty())
      value.contained = take_refs(decoded->packed_refs, false, false);
  }
  task.unready = static_cast<int>(task.to_fetch.size() + unknown->size());
  return true;
}

// A pool worker adopts the job of the first task it gets, so that what the task submits belongs to
// the same job and has the same settings.
void Worker::Impl::adopt_job(const proto::JobConfig& job) {
  JobId id = JobId::from_binary(job.job_id());
  if (options.is_driver || !context.job_id.is_nil() || id.is_nil()) return;
  context.job_id = id;
  context.ray_namespace = job.ray_namespace();
  options.job_config = job;
  self.job_changed();
  put_task = make_task_id(rng.next(), context.job_id);
  server->set_identity(self.identity());
}

namespace {

// Returns the task to its owner as not started. `why` is the error of a call that the actor
// refuses; one that was cancelled has none.
void return_unstarted(const IncomingTask& task, std::string_view why = {}) {
  wire::Writer writer(task.link->connection->begin_flat(wire::kReplies));
  writer.number(task.seq);
  writer.number(wire::TaskStatus::kNotStarted);
  writer.number(uint32_t{0});
  writer.number(static_cast<uint32_t>(why.empty() ? 0 : 1));
  if (!why.empty()) {
    writer.number(uint8_t{0});
    writer.number(static_cast<uint32_t>(why.size()));
    writer.bytes(why);
  }
  task.link->connection->end_flat();
}

// Refuses the calls of an actor that leaves by itself.
void refuse_waiting_calls(Worker::Impl& impl) {
  proto::ErrorValue error = system_error(Code::kActorDied, *impl.left_because);
  error.mutable_exit()->set_kind(proto::ExitInfo::INTENTIONAL);
  error.mutable_exit()->set_message(*impl.left_because);
  error.mutable_exit()->set_ip(impl.context.node_ip);
  error.mutable_exit()->set_pid(getpid());
  const std::string encoded = encode_error(error);
  for (const auto& task : std::exchange(impl.incoming, {})) {
    if (task->link && task->link->open) return_unstarted(*task, encoded);
  }
  for (ExecutingTaskImpl* task = impl.running; task; task = task->next()) {
    const auto& link = task->incoming().link;
    if (link && link->open && task->take_back()) return_unstarted(task->incoming(), encoded);
  }
  impl.loop->flush_all();
}

}  // namespace

void Worker::Impl::on_tasks(const std::shared_ptr<Link>& link, Bytes body) {
  wire::Reader reader(body);
  if (link->job_config) adopt_job(*link->job_config);
  auto refuse = [&](const char* what) {
    link->connection->close(make_error(Code::kProtocol, what));
  };
  while (!reader.at_end()) {
    auto tag = reader.number<uint8_t>();
    if (tag == wire::kTemplateRecord) {
      auto id = reader.number<uint32_t>();
      Bytes bytes = reader.take(reader.number<uint32_t>());
      ExecTemplate* t = reader.ok() ? exec_template(as_view(bytes)) : nullptr;
      if (!t) return refuse("malformed task template");
      link->templates[id] = t;
      continue;
    }
    if (tag == wire::kGpuRecord) {
      link->gpu_ids.resize(reader.number<uint16_t>());
      for (std::string& name : link->gpu_ids)
        name = std::string(as_view(reader.take(reader.number<uint16_t>())));
      if (!reader.ok()) return refuse("malformed GPU ids");
      continue;
    }
    if (tag == wire::kParentRecord) {
      Bytes id = reader.take(TaskId::kSize);
      if (!reader.ok()) return refuse("malformed parent of tasks");
      link->parent = TaskId::from_binary(as_view(id));
      continue;
    }
    if (tag != wire::kTaskRecord) {
      if (tag != wire::kRecordedRecord) return refuse("malformed task");
      link->submissions_recorded = true;
      continue;
    }
    auto task = std::make_shared<IncomingTask>();
    task->link = link;
    task->seq = reader.number<uint32_t>();
    auto found = link->templates.find(reader.number<uint32_t>());
    task->id = TaskId::from_binary(as_view(reader.take(TaskId::kSize)));
    task->attempt = reader.number<uint8_t>();
    task->parent = link->parent;
    task->created_us = reader.number<int64_t>();
    if (task->attempt > 0 && found != link->templates.end() &&
        found->second->spec.num_returns() < 0) {
      task->items_known = reader.number<uint32_t>();
      task->items_taken = reader.number<uint32_t>();
    }
    int count = static_cast<int>(reader.count(wire::kMinValueBytes));
    if (!reader.ok() || found == link->templates.end()) return refuse("malformed task");
    task->function = found->second;
    std::vector<IncomingTask::Fetch> unknown;
    if (!read_args(*task, reader, count, &unknown)) return refuse("malformed task arguments");
    for (const auto& arg : unknown) ask_for_arg(task, arg.index, arg.id, arg.owner);
    if (!left_because) fetch_args(task);
    incoming.push_back(std::move(task));
  }
  if (left_because) refuse_waiting_calls(*this);
}

void Worker::Impl::on_take_back(const std::shared_ptr<Link>& link, Bytes body) {
  wire::Reader reader(body);
  give_back_unstarted(link.get(), reader.number<uint32_t>());
}

void Worker::Impl::on_cancel(const std::shared_ptr<Link>& link, Bytes body) {
  wire::Reader reader(body);
  auto seq = reader.number<uint32_t>();
  auto flags = reader.number<uint8_t>();
  auto waiting = std::find_if(incoming.begin(), incoming.end(),
                              [&](const auto& t) { return t->link == link && t->seq == seq; });
  if (waiting != incoming.end()) {
    return_unstarted(**waiting);
    incoming.erase(waiting);
    link->connection->flush();
    return;
  }
  for (ExecutingTaskImpl* task = running; task; task = task->next()) {
    if (task->incoming().link != link || task->incoming().seq != seq) continue;
    task->set_cancelled();
    // The task waits for a thread or for its turn in the executor.
    if (task->take_back()) {
      return_unstarted(task->incoming());
      link->connection->flush();
      return;
    }
    const TaskId id = task->id();
    const bool by_force = flags & wire::kCancelForce;
    if (!actor) task->interrupt();
    // The task hears of its own cancellation before the errors of its children can reach it.
    const bool ends = by_force && !actor;
    if (!ends) executor->cancel(id);
    if (flags & wire::kCancelRecursive) cancel_children(id, by_force);
    if (!ends) return;
    recorder.flush();
    loop->flush_all();  // Sends the replies of the tasks before it.
    _exit(1);
  }
}

void Worker::Impl::give_back_unstarted(Link* only, size_t limit) {
  if (actor) return;
  for (size_t i = incoming.size(); i-- > 0 && limit > 0;) {
    auto& task = incoming[i];
    if (!task->link || (only && task->link.get() != only)) continue;
    return_unstarted(*task);
    incoming.erase(incoming.begin() + static_cast<ptrdiff_t>(i));
    --limit;
  }
  loop->flush_all();
}

namespace {

// Returns the task that runs next, or the end when none can run yet. `in_order`: a caller's tasks
// do not overtake each other.
auto first_ready(std::deque<std::shared_ptr<IncomingTask>>& incoming, bool in_order) {
  std::vector<const Link*> held_up;  // callers with a task that is not ready
  for (auto it = incoming.begin(); it != incoming.end(); ++it) {
    const Link* caller = (*it)->link.get();
    if (std::find(held_up.begin(), held_up.end(), caller) != held_up.end()) continue;
    if ((*it)->unready == 0) return it;
    if (in_order) held_up.push_back(caller);
  }
  return incoming.end();
}

}  // namespace

std::shared_ptr<IncomingTask> Worker::Impl::next_task() {
  auto ready = first_ready(incoming, is_plain_actor(*this));
  if (ready == incoming.end()) return nullptr;
  auto task = std::move(*ready);
  incoming.erase(ready);
  return task;
}

void Worker::Impl::start_actor(const proto::CreateActorRequest& request,
                               std::function<void(const proto::CreateActorReply&)> reply) {
  // The request may be read together with the reply to this process's registration.
  if (!connected) {
    early_start = [this, request, reply = std::move(reply)] { start_actor(request, reply); };
    return;
  }
  if (actor) {
    proto::CreateActorReply failed;
    failed.mutable_failure()->set_message("this worker is an actor already");
    reply(failed);
    return;
  }
  actor = std::make_unique<proto::CreateActorRequest>(request);
  const proto::ActorSpec& spec = actor->spec();
  if (spec.detached()) actor->mutable_spec()->mutable_job_config()->set_outlives_job(true);
  adopt_job(spec.job_config());
  if (store) store->set_blocked(spec.asyncio());
  auto task = std::make_shared<IncomingTask>();
  task->function = exec_template(spec.creation().SerializeAsString());
  task->id =
      make_task_id(static_cast<uint64_t>(request.epoch()), ActorId::from_binary(spec.actor_id()));
  task->parent = TaskId::from_binary(spec.parent_task_id());
  task->created_us = spec.created_us();
  task->args.resize(spec.args_size());
  actor_reply = std::move(reply);
  for (const proto::TaskArg& arg : spec.args())
    task->unready += arg.kind_case() == proto::TaskArg::kInlined ? 0 : 1;
  for (int i = 0; i < spec.args_size(); ++i) {
    const proto::TaskArg& arg = spec.args(i);
    if (arg.kind_case() == proto::TaskArg::kInlined) {
      Blob blob = copy_blob(as_bytes(arg.inlined()));
      auto decoded = decode_value(blob.bytes());
      if (!decoded || decoded->kind == ValueKind::kError) {
        task->failed = true;
        task->failure = arg.inlined();
        continue;
      }
      Value& value = task->args[i];
      value.kind = decoded->kind;
      value.inband = decoded->inband;
      value.buffers = std::move(decoded->buffers);
      value.keepalive = blob.data;
      if (!decoded->packed_refs.empty())
        value.contained = take_refs(decoded->packed_refs, false, false);
      continue;
    }
    // The owner of an argument by reference is asked where the value is.
    ask_for_arg(task, i, ObjectId::from_binary(arg.object_id()), arg.owner());
  }
  incoming.push_back(std::move(task));
}

void Worker::Impl::request_exit(int code) {
  exiting = true;
  exit_code = code;
  loop->wake();
  pump.wake_followers();
}

bool Worker::Impl::may_leave() const {
  if (executing > 0 || !incoming.empty() || !frames->empty()) return false;
  // The objects and tasks of an actor end with the actor.
  return actor || !is_needed();
}

void Worker::Impl::leave_if_idle() {
  if (!exit_when_idle || exiting || !may_leave()) return;
  if (nodes.local()) {
    rpc::notify(*nodes.local(), &proto::NodeManagerService::Stub::Leaving, proto::Empty());
    loop->flush_all();
  }
  request_exit(0);
}

void Worker::Impl::exit_actor(const std::string& why) {
  if (left_because) return;
  left_because = why;
  refuse_waiting_calls(*this);
  proto::KillWorkerRequest request;
  request.set_worker_id(context.worker_id.binary());
  request.set_why(proto::ExitInfo::INTENTIONAL);
  request.set_message(why);
  request.set_graceful(true);
  if (actor) request.set_actor_id(actor->spec().actor_id());
  // The node-manager answers with Exit; by then it knows the cause of the death.
  if (nodes.local())
    rpc::notify(*nodes.local(), &proto::NodeManagerService::Stub::KillWorker, request);
  loop->flush_all();
}

void Worker::Impl::leave(bool graceful) {
  if (graceful) {
    exit_when_idle = true;
    leave_if_idle();
    return;
  }
  recorder.flush();
  loop->flush_all();
  // User code may never return.
  if (executing > 0 && !executor->end_running()) _exit(0);
  request_exit(0);
}

void Worker::Impl::set_blocked(bool blocked) {
  if (options.is_driver || !nodes.is_local_open()) return;
  blocked_threads += blocked ? 1 : -1;
  bool now_blocked = blocked_threads > 0;
  if (now_blocked == reported_blocked) return;
  // An actor keeps its resources; a task gives its CPU back.
  reported_blocked = now_blocked;
  // A coroutine that awaits something does not block its thread, so nobody relies on its end.
  if (store) store->set_blocked(now_blocked || (actor && actor->spec().asyncio()));
  if (now_blocked) give_back_unstarted(nullptr, ~size_t{0});
  if (is_plain_actor(*this)) {
    if (now_blocked) give_arguments_back(*this);
    for (const auto& task : incoming) fetch_args(task);
  }
  proto::Blocked note;
  note.set_worker_id(context.worker_id.binary());
  note.set_blocked(now_blocked);
  rpc::notify(*nodes.local(), &proto::NodeManagerService::Stub::SetBlocked, note);
  nodes.local()->flush();
}

// A call that names a group the actor does not have ends the actor, as in Ray: the caller must
// have another class than the one that runs here.
void Worker::Impl::require_group(const std::string& name) const {
  if (name.empty() || actor->spec().concurrency_groups().contains(name)) return;
  fmt::print(stderr,
             "The actor {} ends: a call named its concurrency group \"{}\", which does not exist. "
             "The caller's class differs from the actor's.\n",
             actor->spec().class_name(), name);
  _exit(1);
}

void Worker::Impl::end_by_signal() {
  signalled_to_end = true;
  loop->wake();
}

// Replies are collected for up to reply_flush_us before they are sent, so a process that ends at
// once would take finished ones along.
void Worker::Impl::flush_before_exit(bool in_signal_handler) {
  constexpr int64_t kLimitUs = 1'000'000;
  if (getpid() != pid) return;
  // The ending thread may itself hold the lock, with a message half written. In that case nothing
  // can be sent.
  const int64_t until_us = steady_now_us() + kLimitUs;
  while (!mutex.try_lock()) {
    if (steady_now_us() > until_us) return;
    usleep(100);
  }
  if (!in_signal_handler) {
    recorder.flush();
    loop->flush_all();
  }
  loop->send_last(kLimitUs);
  mutex.unlock();
}

int Worker::Impl::run(Executor& the_executor) {
  executor = &the_executor;
  pid = getpid();
  FatalSignals faults([this] { flush_before_exit(true); });
  Lock lock(mutex);
  // Wall clock; 0 means that time has passed since it was read.
  int64_t now_us = 0;
  while (!exiting && !stopping && !signalled_to_end) {
    auto task = next_task();
    if (!task) {
      if (exit_when_idle && may_leave()) break;
      // The replies of this burst leave together, then this thread reads the sockets itself.
      pump.wait_until(lock, -1, [&] {
        return exiting || stopping || signalled_to_end || (exit_when_idle && may_leave()) ||
               first_ready(incoming, is_plain_actor(*this)) != incoming.end();
      });
      last_flush_us = now_us = 0;
      continue;
    }
    if (actor) require_group(task->function->spec.concurrency_group());
    ++executing;
    auto started = std::make_unique<ExecutingTaskImpl>(*this, std::move(task),
                                                       now_us ? now_us : wall_now_us());
    if (actor) watch_turns(*this);
    lock.unlock();
    if (started->incoming().failed) {
      started->fail_encoded();
      started.reset();
    } else {
      started->make_current();
      executor->execute(std::move(started));
      t_current_task = nullptr;
    }
    lock.lock();
    now_us = wall_now_us();
    if (last_flush_us == 0) last_flush_us = now_us;
    // A clock that was set back leads to a flush as well.
    if (static_cast<uint64_t>(now_us - last_flush_us) >
            static_cast<uint64_t>(settings.reply_flush_us) ||
        incoming.empty()) {
      loop->flush_all();
      last_flush_us = now_us;
      now_us = 0;
    }
  }
  // Otherwise the workers of these leases would end with this one.
  submitter->return_idle_leases();
  loop->flush_all();
  recorder.flush();
  loop->flush_all();
  return signalled_to_end ? -SIGTERM : exit_code;
}

bool Worker::Impl::was_last_call(ExecTemplate& function) const {
  int max_calls = function.spec.max_calls();
  return max_calls > 0 && ++function.calls >= max_calls && !actor;
}

// The reply leaves when the owners know of every borrow that it ends or begins.
void Worker::Impl::send_reply(ExecutingTaskImpl& task) {
  --executing;
  // The task has not started and never will; see exit_actor().
  if (!task.replied() || task.taken_back()) return leave_if_idle();
  recorder.task_ended(task, actor ? &actor->spec() : nullptr);
  task.incoming().function->ran = true;
  auto& incoming_task = task.incoming();
  if (!incoming_task.link) {
    // The reply to an actor's creation goes to the node-manager.
    proto::CreateActorReply answer;
    answer.set_ok(!task.failed());
    *answer.mutable_address() = self.address();
    answer.set_pid(getpid());
    if (task.failed()) {
      proto::ExitInfo& failure = *answer.mutable_failure();
      auto error = error_of(as_bytes(task.error_value()));
      if (error && error->exit().kind() == proto::ExitInfo::INTENTIONAL) {  // exit_actor()
        failure = error->exit();
      } else {
        failure.set_kind(proto::ExitInfo::INIT_FAILED);
        failure.set_creation_error(task.error_value());
        // Python makes its text from the exception itself.
        if (error && options.language != proto::LANGUAGE_PYTHON)
          failure.set_message(error_text(*error));
      }
      failure.set_pid(getpid());
      failure.set_ip(context.node_ip);
    }
    task.drop_args();
    refs->register_kept();
    // The node-manager ends this process when it has the reply.
    if (task.failed()) recorder.flush();
    frames->answer_creation(
        [reply = std::exchange(actor_reply, nullptr), answer = std::move(answer)] {
          if (reply) reply(answer);
        });
    return;
  }
  if (was_last_call(*incoming_task.function)) {
    task.mark_leaving();
    exit_when_idle = true;
    recorder.flush();
  }
  if (refs->has_unregistered()) {
    task.drop_args();
    refs->register_kept();
  }
  if (!incoming_task.link->open) return leave_if_idle();
  frames->send(incoming_task.link, wire::kReplies, task.reply(), task.take_lent(), true);
  if (incoming_task.link->connection->queued_bytes() > 16384 || t_current_task != &task)
    incoming_task.link->connection->flush();
  leave_if_idle();
}

}  // namespace rt::worker
