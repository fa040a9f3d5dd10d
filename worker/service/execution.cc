#include "worker/service/execution.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/rpc/client.h"
#include "worker/core/death.h"
#include "worker/core/value_codec.h"
#include "worker/core/wire.h"
#include "worker/service/cancellation.h"
#include "worker/service/current_task.h"
#include "worker/service/executing_task.h"
#include "worker/service/fatal_signals.h"
#include "worker/service/lease_client.h"
#include "worker/service/node_directory.h"
#include "worker/service/objects.h"
#include "worker/service/peer_links.h"
#include "worker/service/pump.h"
#include "worker/service/recorder.h"
#include "worker/service/waiting.h"

namespace rt::worker {
namespace {

// Interrupts are repeated after the first of these pauses, and then at up to the second one.
constexpr int64_t kNoticeUs = 20'000, kLongestNoticeUs = 1'000'000;

}  // namespace

thread_local ExecutingTaskImpl* t_current_task = nullptr;
thread_local TaskId t_submit_for;
TaskId submitting_task() { return t_current_task ? t_current_task->id() : t_submit_for; }

Execution::Execution(const Parts& parts, Hooks hooks)
    : parts_(parts),
      hooks_(std::move(hooks)),
      queue_(*this, parts.objects, parts.groups, parts.shared.loop, parts.shared.options,
             parts.shared.context, hooks_.adopt_job),
      departure_(parts.shared.loop.waker(), queue_.line(), departure_hooks()),
      frames_(parts.shared.loop, parts.objects, parts.peers, [this] {
        assert_locked();
        departure_.leaving().look();
      }) {}

Departure::Hooks Execution::departure_hooks() {
  Departure::Hooks hooks;
  hooks.holds_replies = [this] {
    assert_locked();
    return !frames_.empty();
  };
  hooks.is_needed = hooks_.is_needed;
  hooks.interrupt = [this] {
    assert_locked();
    return end_running();
  };
  hooks.refuse_with = [this](const std::string& why) {
    assert_locked();
    refuse_with(why);
  };
  hooks.ask_to_end = [this](const std::string& why) {
    assert_locked();
    ask_to_end(why);
  };
  hooks.tell_leaving = [this] {
    assert_locked();
    tell_leaving();
  };
  hooks.flush = [this] {
    assert_locked();
    flush();
  };
  hooks.wake = [this] {
    assert_locked();
    parts_.shared.loop.wake();
    parts_.pump.wake_followers();
  };
  return hooks;
}

void Execution::start_actor(const proto::CreateActorRequest& request, CreationReply reply) {
  // The request may be read together with the reply to this process's registration.
  if (!parts_.nodes.is_registered()) {
    early_start_ = [this, request, reply = std::move(reply)] {
      assert_locked();
      start_actor(request, reply);
    };
    return;
  }
  if (actor_) {
    proto::CreateActorReply failed;
    failed.mutable_failure()->set_message("this worker is an actor already");
    reply(failed);
    return;
  }
  actor_ = std::make_unique<proto::CreateActorRequest>(request);
  const proto::ActorSpec& spec = actor_->spec();
  if (spec.detached()) actor_->mutable_spec()->mutable_job_config()->set_outlives_job(true);
  hooks_.adopt_job(spec.job_config());
  if (parts_.objects.store()) parts_.objects.store()->set_blocked(spec.asyncio());
  actor_reply_ = std::move(reply);
  queue_.line().become_actor(!spec.out_of_order());
  queue_.add_creation(*actor_);
}

void Execution::connected() {
  if (early_start_) std::exchange(early_start_, nullptr)();
}

void Execution::on_cancel(const std::shared_ptr<Link>& link, Bytes body) {
  wire::Reader reader(body);
  auto seq = reader.number<uint32_t>();
  auto flags = reader.number<uint8_t>();
  if (queue_.cancel(link, seq)) return;
  for (ExecutingTaskImpl* task = running_; task; task = task->next()) {
    if (task->incoming().link != link || task->incoming().seq != seq) continue;
    task->progress().cancel();
    // The task waits for a thread or for its turn in the executor.
    if (task->progress().take_back()) {
      return_unstarted(task->incoming());
      link->connection->flush();
      return;
    }
    const TaskId id = task->id();
    const bool by_force = flags & wire::kCancelForce;
    if (!actor_) task->progress().interrupt();
    // The task hears of its own cancellation before the errors of its children can reach it.
    const bool ends = by_force && !actor_;
    if (!ends) {
      executor_->cancel(id);
      interrupt_again_after(kNoticeUs, id);
    }
    if (flags & wire::kCancelRecursive) parts_.cancellation.cancel_children(id, by_force);
    // The replies of the tasks before it are sent.
    if (ends) end_process(1);
    return;
  }
}

void Execution::interrupt_again_after(int64_t pause_us, const TaskId& id) {
  parts_.shared.loop.run_after(pause_us, [this, pause_us, id] {
    assert_locked();
    if (executor_->interrupt_again(id))
      interrupt_again_after(std::min(2 * pause_us, kLongestNoticeUs), id);
  });
}

void Execution::flush() {
  parts_.recorder.flush();
  parts_.shared.loop.flush_all();
}

void Execution::end_process(int code) {
  flush();
  _exit(code);
}

void Execution::tell_leaving() {
  if (!parts_.nodes.local()) return;
  rpc::notify(*parts_.nodes.local(), &proto::NodeManagerService::Stub::Leaving, proto::Empty());
  parts_.shared.loop.flush_all();
}

void Execution::ask_to_end(const std::string& why) {
  proto::KillWorkerRequest request;
  request.set_worker_id(parts_.shared.context.worker_id.binary());
  request.set_why(proto::ExitInfo::INTENTIONAL);
  request.set_message(why);
  request.set_graceful(true);
  if (actor_) request.set_actor_id(actor_->spec().actor_id());
  if (parts_.nodes.local())
    rpc::notify(*parts_.nodes.local(), &proto::NodeManagerService::Stub::KillWorker, request);
  parts_.shared.loop.flush_all();
}

void Execution::refuse_with(const std::string& why) {
  proto::ErrorValue error = system_error(Code::kActorDied, why);
  error.mutable_exit()->set_kind(proto::ExitInfo::INTENTIONAL);
  error.mutable_exit()->set_message(why);
  error.mutable_exit()->set_ip(parts_.shared.context.node_ip);
  error.mutable_exit()->set_pid(getpid());
  const std::string encoded = encode_error(error);
  queue_.set_refusal(encoded);
  for (ExecutingTaskImpl* task = running_; task; task = task->next()) {
    const auto& link = task->incoming().link;
    if (link && link->open && task->progress().take_back())
      return_unstarted(task->incoming(), encoded);
  }
}

void Execution::set_blocked(bool blocked) {
  if (parts_.shared.options.is_driver || !parts_.nodes.is_local_open()) return;
  if (!queue_.line().thread_blocked(blocked) || !blocked) return;
  // The tasks that waited here go elsewhere, and leave their room.
  if (parts_.objects.store()) parts_.objects.store()->drain_releases();
  parts_.shared.loop.flush_all();
}

// An actor keeps its resources; a task gives its CPU back.
void Execution::tell_blocked(bool blocked) {
  // A coroutine that awaits something does not block its thread, so nobody relies on its end.
  if (parts_.objects.store())
    parts_.objects.store()->set_blocked(blocked || (actor_ && actor_->spec().asyncio()));
  proto::Blocked note;
  note.set_worker_id(parts_.shared.context.worker_id.binary());
  note.set_blocked(blocked);
  rpc::notify(*parts_.nodes.local(), &proto::NodeManagerService::Stub::SetBlocked, note);
  parts_.nodes.local()->flush();
}

int64_t Execution::waiting_for_turn(int64_t for_us) const {
  if (!actor_ || !is_concurrent(actor_->spec())) return 0;
  const int64_t before_us = wall_now_us() - for_us;
  int64_t count = 0;
  for (ExecutingTaskImpl* task = running_; task; task = task->next())
    count += !task->progress().has_started() && task->times().start_us <= before_us;
  return count;
}

// A call that names a group the actor does not have ends the actor, as in Ray.
void Execution::require_group(const std::string& name) const {
  if (name.empty() || actor_->spec().concurrency_groups().contains(name)) return;
  fmt::print(stderr,
             "The actor {} ends: a call named its concurrency group \"{}\", which it does "
             "not have: the name in .options() is wrong, or the caller has another class.\n",
             actor_->spec().class_name(), name);
  _exit(1);
}

// Only running streams count; items that an ended one has left to its consumer do not hold up the
// others.
int64_t Execution::items_ahead() const {
  int64_t ahead = 0;
  for (const ExecutingTaskImpl* task = running_; task; task = task->next())
    ahead += task->items_ahead();
  return ahead;
}

void Execution::on_items_taken(const std::shared_ptr<Link>& link, Bytes body) {
  wire::Reader reader(body);
  auto seq = reader.number<uint32_t>();
  auto taken = reader.number<uint32_t>();
  if (!reader.ok())
    return link->connection->close(make_error(Code::kProtocol, "malformed count of items taken"));
  for (ExecutingTaskImpl* task = running_; task; task = task->next()) {
    if (task->incoming().link == link && task->incoming().seq == seq)
      return task->set_items_taken(taken);
  }
  // A repeated attempt that has not started yet.
  queue_.set_items_taken(*link, seq, taken);
}

// The first item leaves at once. The following ones of a fast generator are sent together.
void Execution::flush_items(Link& link) {
  int64_t now = steady_now_us();
  if (now - last_item_flush_us_ >= parts_.shared.settings().reply_flush_us ||
      link.connection->queued_bytes() > 16384) {
    last_item_flush_us_ = now;
    link.connection->flush();
    return;
  }
  if (item_timer_set_) return;
  item_timer_set_ = true;
  // The loop calls flush_all() after it has dispatched a timer.
  parts_.shared.loop.run_after(parts_.shared.settings().reply_flush_us, [this] {
    assert_locked();
    item_timer_set_ = false;
    last_item_flush_us_ = steady_now_us();
  });
}

// Replies are collected for up to reply_flush_us before they are sent, so a process that ends at
// once would take finished ones along.
void Execution::flush_before_exit(bool in_signal_handler) {
  constexpr int64_t kLimitUs = 1'000'000;
  if (getpid() != pid_) return;
  // The ending thread may itself hold the lock, with a message half written. In that case nothing
  // can be sent.
  const int64_t until_us = steady_now_us() + kLimitUs;
  while (!parts_.shared.mutex.try_lock()) {
    if (steady_now_us() > until_us) return;
    usleep(100);
  }
  if (!in_signal_handler) flush();
  parts_.shared.loop.send_last(kLimitUs);
  parts_.shared.mutex.unlock();
}

int Execution::run(Executor& executor) {
  pid_ = getpid();
  FatalSignals faults([this] { flush_before_exit(true); });
  WorkerLock lock(parts_.shared.mutex);
  executor_ = &executor;
  // Wall clock; 0 means that time has passed since it was read.
  int64_t now_us = 0;
  while (!departure_.ends() && !parts_.shared.stopping) {
    auto task = queue_.next();
    if (!task) {
      if (departure_.leaving().is_free_to_go()) break;
      // The replies of this burst leave together, then this thread reads the sockets itself.
      parts_.pump.wait_until(lock, -1, [&] {
        assert_locked();
        return departure_.ends() || parts_.shared.stopping ||
               departure_.leaving().is_free_to_go() || queue_.line().any_ready();
      });
      last_flush_us_ = now_us = 0;
      continue;
    }
    if (actor_) require_group(task->function->spec.concurrency_group());
    auto started = std::make_unique<ExecutingTaskImpl>(
        ExecutingTaskImpl::Parts{parts_.shared, parts_.pump, parts_.objects, *this},
        std::move(task), now_us ? now_us : wall_now_us());
    if (actor_ && is_concurrent(actor_->spec())) parts_.waiting.watch_turns();
    lock.unlock();
    if (started->incoming().failed) {
      started->fail_encoded();
      started.reset();
    } else {
      started->make_current();
      executor.execute(std::move(started));
      t_current_task = nullptr;
    }
    lock.lock();
    now_us = wall_now_us();
    if (last_flush_us_ == 0) last_flush_us_ = now_us;
    // A clock that was set back leads to a flush as well.
    if (static_cast<uint64_t>(now_us - last_flush_us_) >
            static_cast<uint64_t>(parts_.shared.settings().reply_flush_us) ||
        queue_.line().empty()) {
      parts_.shared.loop.flush_all();
      last_flush_us_ = now_us;
      now_us = 0;
    }
  }
  // Otherwise the workers of these leases would end with this one.
  parts_.leases.submitter().return_idle_leases();
  parts_.shared.loop.flush_all();
  parts_.recorder.flush();
  parts_.shared.loop.flush_all();
  return departure_.exit_code();
}

// The answer goes to the node-manager.
void Execution::send_creation_reply(ExecutingTaskImpl& task) {
  proto::CreateActorReply answer;
  answer.set_ok(!task.reply().failed());
  *answer.mutable_address() = parts_.shared.self.address();
  answer.set_pid(getpid());
  if (task.reply().failed()) {
    proto::ExitInfo& failure = *answer.mutable_failure();
    auto error = error_of(as_bytes(task.reply().error()));
    if (error && error->exit().kind() == proto::ExitInfo::INTENTIONAL) {  // exit_actor()
      failure = error->exit();
    } else {
      failure.set_kind(proto::ExitInfo::INIT_FAILED);
      failure.set_creation_error(task.reply().error());
      // Python makes its text from the exception itself.
      if (error && parts_.shared.options.language != proto::LANGUAGE_PYTHON)
        failure.set_message(error_text(*error));
    }
    failure.set_pid(getpid());
    failure.set_ip(parts_.shared.context.node_ip);
  }
  task.drop_args();
  parts_.objects.refs().register_kept();
  // The node-manager ends this process when it has the reply.
  if (task.reply().failed()) parts_.recorder.flush();
  frames_.answer_creation(
      [reply = std::exchange(actor_reply_, nullptr), answer = std::move(answer)] {
        if (reply) reply(answer);
      });
}

void Execution::send_reply(ExecutingTaskImpl& task) {
  queue_.line().ended();
  Leaving& leaving = departure_.leaving();
  // The task has not started and never will; see exit_actor().
  if (!task.reply().begun() || task.progress().taken_back()) return leaving.look();
  parts_.recorder.task_ended(task, actor_spec());
  task.incoming().function->ran = true;
  auto& incoming_task = task.incoming();
  if (!incoming_task.link) return send_creation_reply(task);
  ExecTemplate& function = *incoming_task.function;
  if (leaving.call_ended(function.spec.max_calls(), function.calls)) {
    task.reply().mark_leaving();
    parts_.recorder.flush();
  }
  if (parts_.objects.refs().has_unregistered()) {
    task.drop_args();
    parts_.objects.refs().register_kept();
  }
  if (!incoming_task.link->open) return leaving.look();
  frames_.send(incoming_task.link, wire::kReplies, task.reply().bytes(), task.take_lent(), true);
  if (incoming_task.link->connection->queued_bytes() > 16384 || t_current_task != &task)
    incoming_task.link->connection->flush();
  leaving.look();
}

}  // namespace rt::worker
