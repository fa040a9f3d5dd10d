#include "tests/sim/sim_worker.h"

#include <fmt/core.h>
#include <signal.h>

#include "tests/sim/sim_node.h"
#include "tests/sim/sim_owner.h"

namespace rt::sim {

SimWorker::SimWorker(World& world, SimNode& node, const WorkerId& id, int pid)
    : Process(world.clock, world.network, node.host()),
      world_(world),
      node_(node),
      id_(id),
      pid_(pid) {
  world_.workers[id_] = this;
  after(world_.between(1000, 10'000), "worker started", [this] { connect(); });
}

void SimWorker::connect() {
  network_.connect(
      *this, host(), "worker connects", [this]() -> Process* { return &node_; },
      [this](Result<ChannelPtr> channel) {
        if (!channel) return die({true, 1, 0, ""});
        node_channel_ = *channel;
        // A worker ends when its node-manager is gone.
        node_channel_->on_closed = [this] { die({true, 1, 0, ""}); };
        node_channel_->call<proto::Empty>(
            "register worker",
            [id = id_, pid = pid_](Channel& at, Channel::Answer<proto::Empty> answer) {
              node_at(at).register_worker(at, id, pid, std::move(answer));
            },
            [this](Result<proto::Empty> registered) {
              if (!registered) die({true, 1, 0, ""});
            });
      });
}

void SimWorker::accepted(const ChannelPtr& channel) {
  links_[channel->connection()] = channel;
  channel->on_closed = [this, id = channel->connection()] {
    links_.erase(id);
    // Tasks of this owner that have not started are dropped.
    std::erase_if(incoming_, [id](const Incoming& task) { return task.from->connection() == id; });
  };
}

void SimWorker::die(const node::ProcessEnd& end_info) {
  if (!alive()) return;
  if (running_) world_.ledger.stopped(running_->incoming.task.id, number());
  running_.reset();
  if (!actor_.is_nil()) world_.ledger.actor_ended(actor_, number());
  world_.ledger.worker_died();
  world_.workers.erase(id_);
  // Whether the last replies still reach their owners is left to chance.
  end(world_.rng.chance(0.5) ? Exit::kOrderly : Exit::kAbrupt);
  node_.process_ended(id_, end_info);
}

// ---- tasks

// A worker is leased to one owner at a time: tasks of two owners would mean that it was leased
// twice.
void SimWorker::check_one_owner(const Channel& from) const {
  if (is_actor()) return;
  auto check = [&](const Channel& other, const TaskMessage& task) {
    if (other.connection() == from.connection() || !other.open()) return;
    violation(fmt::format(
        "worker #{} has tasks of two owners: {} came over connection {}, now one over {}", number(),
        task.id.hex(), other.connection(), from.connection()));
  };
  for (const Incoming& waiting : incoming_) check(*waiting.from, waiting.task);
  if (running_) check(*running_->incoming.from, running_->incoming.task);
}

void SimWorker::run(Channel& from, const TaskMessage& task) {
  check_one_owner(from);
  const TaskRecord& record = world_.ledger.task(task.id);
  if (record.actor.is_nil() == is_actor())
    violation(
        fmt::format("worker #{} got a {} it cannot run", number(), is_actor() ? "task" : "call"));
  if (is_actor()) {
    // Over one connection the calls of an owner arrive in the order in which it made them.
    uint64_t& last = last_order_[from.connection()];
    if (record.order <= last)
      violation(fmt::format("call {} of owner #{} arrives after call {}", record.order,
                            record.owner, last));
    last = record.order;
  }
  incoming_.push_back({links_.at(from.connection()), task});
  next();
}

void SimWorker::next() {
  if (running_ || incoming_.empty() || (is_actor() && !constructed_)) return;
  Incoming incoming = std::move(incoming_.front());
  incoming_.pop_front();
  const TaskRecord& record = world_.ledger.started(incoming.task.id, number());
  running_ = Running{std::move(incoming), &record, clock_.now_us()};
  node_.check_computing();
  const TaskPlan& plan = record.plan;
  if (record.executions <= plan.crashes) {
    after(plan.duration_us / 2, "task crashes",
          [this] { die({true, 0, SIGSEGV, "segmentation fault"}); });
  } else if (plan.child) {
    after(plan.duration_us / 2, "task waits", [this, &plan] {
      if (!plan.polls) blocked(true);
      const Incoming& task = running_->incoming;
      task.from->send("submit a child",
                      [id = task.task.id](Channel& at) { owner_at(at).submit_child_of(id); });
      wait_for_child();
    });
  } else if (plan.blocked_us == 0) {
    after(plan.duration_us, "task done", [this] { finished(); });
  } else {
    after(plan.duration_us / 2, "task waits", [this, &plan] {
      blocked(true);
      after(plan.blocked_us, "task resumes", [this, &plan] {
        blocked(false);
        after(plan.duration_us / 2, "task done", [this] { finished(); });
      });
    });
  }
}

void SimWorker::blocked(bool on) {
  ever_blocked_ = true;
  if (on) give_back(nullptr, ~size_t{0});
  node_channel_->send("blocked", [on](Channel& at) { node_at(at).set_blocked(at, on); });
}

void SimWorker::wait_for_child() {
  const TaskRecord& parent = *running_->record;
  if (parent.child.is_nil() || !world_.ledger.task(parent.child).ended) {
    after(1000, "task looks for its child", [this] { wait_for_child(); });
    return;
  }
  if (!parent.plan.polls) blocked(false);
  after(parent.plan.duration_us / 2, "task done", [this] { finished(); });
}

void SimWorker::finished() {
  Running done = std::move(*running_);
  running_.reset();
  world_.ledger.stopped(done.incoming.task.id, number());
  uint32_t duration = static_cast<uint32_t>(clock_.now_us() - done.since_us);
  done.incoming.from->send("reply", [seq = done.incoming.task.seq, duration](Channel& at) {
    owner_at(at).on_reply(at, seq, TaskStatus::kOk, duration);
  });
  if (leaving_ || (exit_when_idle_ && incoming_.empty())) return die({true, 0, 0, ""});
  next();
}

void SimWorker::take_back(Channel& from, int count) {
  give_back(&from, static_cast<size_t>(std::max(count, 0)));
}

void SimWorker::give_back(Channel* only, size_t limit) {
  if (is_actor()) return;
  for (size_t i = incoming_.size(); i-- > 0 && limit > 0;) {
    if (only && incoming_[i].from.get() != only) continue;
    incoming_[i].from->send("not started", [seq = incoming_[i].task.seq](Channel& at) {
      owner_at(at).on_reply(at, seq, TaskStatus::kNotStarted, 0);
    });
    incoming_.erase(incoming_.begin() + static_cast<std::ptrdiff_t>(i));
    --limit;
  }
}

const TaskPlan* SimWorker::computing() const {
  return running_ && !ever_blocked_ && !is_actor() ? &running_->record->plan : nullptr;
}

// ---- requests of the node-manager

void SimWorker::ask_exit(bool graceful) {
  (graceful ? exit_when_idle_ : leaving_) = true;
  if (!running_ && (leaving_ || incoming_.empty())) die({true, 0, 0, ""});
}

void SimWorker::start_actor(const proto::CreateActorRequest& request,
                            Channel::Answer<proto::CreateActorReply> answer) {
  if (is_actor() || running_)
    violation(fmt::format("worker #{} is to become an actor while it is busy", number()));
  actor_ = ActorId::from_binary(request.spec().actor_id());
  epoch_ = request.epoch();
  world_.ledger.actor_started(actor_, epoch_, number());
  const ActorPlan& plan = world_.ledger.actor(actor_).plan;
  after(plan.constructor_us, "constructor",
        [this, raises = plan.constructor_raises, answer = std::move(answer)] {
          proto::CreateActorReply reply;
          reply.set_ok(!raises);
          if (raises) reply.mutable_failure()->set_kind(proto::ExitInfo::INIT_FAILED);
          constructed_ = !raises;
          answer(reply);
          next();
        });
}

}  // namespace rt::sim
