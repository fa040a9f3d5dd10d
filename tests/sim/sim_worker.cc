#include "tests/sim/sim_worker.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>

#include "tests/sim/room_check.h"
#include "tests/sim/sim_node.h"
#include "tests/sim/sim_owner.h"
#include "tests/sim/sim_store.h"

namespace rt::sim {

SimWorker::SimWorker(World& world, SimNode& node, const WorkerId& id, int pid)
    : StoreUser(world.clock, world.network, node.host()),
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
        node_.store() ? connect_store() : register_at_node();
      });
}

void SimWorker::connect_store() {
  network_.connect(
      *this, host(), "worker connects to the store", [this]() -> Process* { return node_.store(); },
      [this](Result<ChannelPtr> channel) {
        if (!channel) return die({true, 1, 0, ""});
        store_ = *channel;
        register_at_node();
      });
}

void SimWorker::register_at_node() {
  node_channel_->call<proto::Empty>(
      "register worker",
      [id = id_, pid = pid_](Channel& at, Channel::Answer<proto::Empty> answer) {
        node_at(at).register_worker(at, id, pid, std::move(answer));
      },
      [this](Result<proto::Empty> registered) {
        if (!registered) die({true, 1, 0, ""});
      });
}

void SimWorker::accepted(const ChannelPtr& channel) {
  links_[channel->connection()] = channel;
  channel->on_closed = [this, id = channel->connection()] {
    links_.erase(id);
    // Tasks of this owner that have not started are dropped.
    std::erase_if(incoming_, [this, id](const Incoming& task) {
      if (task.from->connection() != id) return false;
      end_arguments(task);
      return true;
    });
  };
}

void SimWorker::die(const node::ProcessEnd& end_info) {
  if (!alive()) return;
  if (running_) world_.ledger.stopped(running_->incoming.task.id, number());
  running_.reset();
  if (!actor_.is_nil()) {
    world_.ledger.actor_ended(actor_, number());
  } else if (!chosen_for_.is_nil()) {
    world_.ledger.actor_start_lost(chosen_for_);
  }
  world_.ledger.worker_died();
  world_.workers.erase(id_);
  // Whether the last replies still reach their owners is left to chance.
  end(world_.rng.chance(0.5) ? Exit::kOrderly : Exit::kAbrupt);
  node_.process_ended(id_, end_info);
}

// ---- tasks

// A worker is leased to one owner at a time: tasks of two owners would mean that it was leased
// twice. What a job left in a process, such as its modules, must not meet another job. The owners
// of a simulation are drivers, and each has a job of its own.
void SimWorker::check_one_owner(const Channel& from, uint64_t owner) {
  if (is_actor()) return;
  if (served_ != 0 && served_ != owner)
    violation(fmt::format("worker #{} has run tasks of owner #{}'s job, now one of #{}'s", number(),
                          served_, owner));
  served_ = owner;
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
  const TaskRecord& record = world_.ledger.task(task.id);
  check_one_owner(from, record.owner);
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
  Incoming& incoming = incoming_.emplace_back(Incoming{links_.at(from.connection()), task});
  incoming.ready = record.plan.arguments.empty();
  if (!is_blocked_) get_arguments(incoming);
  next();
}

void SimWorker::get_arguments(Incoming& task) {
  if (task.ready || task.ticket > 0) return;
  task.ticket = ++last_ticket_;
  const auto& values = world_.ledger.task(task.task.id).plan.arguments;
  store_->send("get arguments", [ticket = last_ticket_, values](Channel& at) {
    store_at(at).get_arguments(at, ticket, values);
  });
}

void SimWorker::on_arguments(uint64_t ticket, bool whole) {
  if (auto given_up = given_up_.extract(ticket); !given_up.empty()) {
    if (!whole) return;
    return store_->send("release", [ticket, values = given_up.mapped()](Channel& at) {
      store_at(at).end_task(at, ticket, values, true);
    });
  }
  auto task = std::find_if(incoming_.begin(), incoming_.end(),
                           [ticket](const Incoming& one) { return one.ticket == ticket; });
  if (task == incoming_.end() || !whole)
    violation(fmt::format("worker #{} got arguments that it does not wait for", number()));
  task->ready = true;
  next();
}

void SimWorker::end_arguments(const Incoming& task) {
  if (task.ticket == 0 || !store_->open()) return;
  const auto& values = world_.ledger.task(task.task.id).plan.arguments;
  if (!task.ready) given_up_[task.ticket] = values;
  store_->send("end task", [ticket = task.ticket, values, got = task.ready](Channel& at) {
    store_at(at).end_task(at, ticket, values, got);
  });
}

std::deque<SimWorker::Incoming>::iterator SimWorker::first_ready() {
  std::set<const Channel*> held_up;
  for (auto it = incoming_.begin(); it != incoming_.end(); ++it) {
    if (held_up.contains(it->from.get())) continue;
    if (it->ready) return it;
    if (is_actor()) held_up.insert(it->from.get());
  }
  return incoming_.end();
}

void SimWorker::next() {
  if (running_ || (is_actor() && !constructed_)) return;
  auto ready = first_ready();
  if (ready == incoming_.end()) return;
  Incoming incoming = std::move(*ready);
  incoming_.erase(ready);
  const TaskRecord& record = world_.ledger.started(incoming.task.id, number());
  running_ = Running{std::move(incoming), &record, clock_.now_us()};
  const TaskPlan& plan = record.plan;
  if (!is_actor()) {
    in_group_ = {plan.group, plan.bundle};
    check_start(world_, node_, *this);
  }
  check_computing(node_);
  if (record.executions <= plan.crashes) {
    after(plan.duration_us / 2, "task crashes",
          [this] { die({true, 0, SIGSEGV, "segmentation fault"}); });
  } else if (plan.child || plan.blocked_us > 0 || plan.makes > 0) {
    after(plan.duration_us / 2, "task is half-way", [this] { half_way(); });
  } else {
    after(plan.duration_us, "task done", [this] { finished(); });
  }
}

void SimWorker::half_way() {
  const TaskPlan& plan = running_->record->plan;
  if (plan.makes == 0) return wait_for_something();
  made_ = {make_object_id(running_->incoming.task.id, static_cast<uint32_t>(world_.rng.next())),
           plan.makes, node_.id()};
  store_->send("create", [value = made_](Channel& at) { store_at(at).create(at, value); });
}

void SimWorker::on_room() { wait_for_something(); }

void SimWorker::wait_for_something() {
  const TaskPlan& plan = running_->record->plan;
  if (plan.child) {
    if (!plan.polls) blocked(true);
    const Incoming& task = running_->incoming;
    task.from->send("submit a child",
                    [id = task.task.id](Channel& at) { owner_at(at).submit_child_of(id); });
    wait_for_child();
  } else if (plan.blocked_us > 0) {
    blocked(true);
    after(plan.blocked_us, "task resumes", [this, &plan] {
      blocked(false);
      after(plan.duration_us / 2, "task done", [this] { finished(); });
    });
  } else {
    after(plan.duration_us / 2, "task done", [this] { finished(); });
  }
}

void SimWorker::blocked(bool on) {
  ever_blocked_ = true;
  is_blocked_ = on;
  if (on) give_back(nullptr, ~size_t{0});
  // The calls behind a blocked one leave their room to what it waits for.
  for (Incoming& task : incoming_) {
    if (on && task.ticket > 0) {
      end_arguments(task);
      task.ticket = 0;
      task.ready = false;
    } else if (!on) {
      get_arguments(task);
    }
  }
  node_channel_->send("blocked", [on](Channel& at) { node_at(at).set_blocked(at, on); });
  if (store_) store_->send("blocked", [on](Channel& at) { store_at(at).set_blocked(at, on); });
}

void SimWorker::wait_for_child() {
  const TaskRecord& parent = *running_->record;
  // The request to submit it may be lost with the connection, and then nobody waits for the result.
  if (parent.child.is_nil() && !running_->incoming.from->open()) return finished();
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
  if (!is_actor()) in_group_ = {};
  end_arguments(done.incoming);
  if (made_.size > 0)
    store_->send("free",
                 [id = std::exchange(made_, {}).id](Channel& at) { store_at(at).free(at, id); });
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
    end_arguments(incoming_[i]);
    incoming_.erase(incoming_.begin() + static_cast<std::ptrdiff_t>(i));
    --limit;
  }
}

const TaskPlan* SimWorker::computing() const {
  return running_ && !ever_blocked_ && !is_actor() ? &running_->record->plan : nullptr;
}

std::string SimWorker::describe() const {
  if (load() == 0) return "";
  auto of = [](const TaskRecord& record, size_t arguments) {
    return fmt::format("{} {}{}{}", record.plan.resources.to_string(),
                       arguments ? fmt::format("with {} values ", arguments) : "",
                       record.plan.makes ? "makes one " : "",
                       record.plan.child ? (record.plan.polls ? "polls" : "waits") : "");
  };
  std::string text = fmt::format("  {} #{} on node #{}:", is_actor() ? "actor" : "worker", number(),
                                 node_.number());
  if (running_)
    text +=
        fmt::format(" runs [{}]", of(*running_->record, running_->record->plan.arguments.size()));
  for (const Incoming& task : incoming_) {
    const TaskRecord& record = world_.ledger.task(task.task.id);
    text += fmt::format(" {} [{}]", task.ready ? "has" : "wants room for",
                        of(record, record.plan.arguments.size()));
  }
  return text + "\n";
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
  in_group_ = {plan.group, request.bundle_index()};
  if (!plan.group.is_nil()) check_start(world_, node_, *this);
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
