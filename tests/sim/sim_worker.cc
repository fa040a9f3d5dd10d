#include "tests/sim/sim_worker.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/json_text.h"
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
    const ChannelPtr closed = links_.extract(id).mapped();
    std::erase_if(unanswered_, [id](const auto& task) { return task.first == id; });
    drive([&] {
      line_.caller_gone(*closed);
      replies_.release();
      leaving_.look();
    });
  };
}

void SimWorker::die(const node::ProcessEnd& end_info) {
  end_process(end_info, world_.rng.chance(0.5) ? Exit::kOrderly : Exit::kAbrupt);
}

void SimWorker::end_process(const node::ProcessEnd& end_info, Exit how) {
  if (!alive()) return;
  if (running_) world_.ledger.stopped(running_->incoming->id, number());
  running_.reset();
  if (!actor_.is_nil()) {
    world_.ledger.actor_ended(actor_, number());
  } else if (!chosen_for_.is_nil()) {
    world_.ledger.actor_start_lost(chosen_for_);
  }
  world_.ledger.worker_died();
  world_.workers.erase(id_);
  end(how);
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
  auto check = [&](const Incoming& task) {
    const Channel& other = *task.from;
    if (other.connection() == from.connection() || !other.open()) return;
    violation(fmt::format(
        "worker #{} has tasks of two owners: {} came over connection {}, now one over {}", number(),
        task.id.hex(), other.connection(), from.connection()));
  };
  for (const auto& waiting : line_.tasks()) check(static_cast<const Incoming&>(*waiting));
  if (running_) check(*running_->incoming);
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
    // A call whose error is retried comes after those that are under way.
    if (record.order <= last && !record.error_retried)
      violation(fmt::format("call {} of owner #{} arrives after call {}", record.order,
                            record.owner, last));
    last = std::max(last, record.order);
  }
  check_place(record);
  auto incoming = std::make_shared<Incoming>();
  incoming->from = links_.at(from.connection());
  incoming->caller = incoming->from.get();
  incoming->seq = task.seq;
  incoming->id = task.id;
  unanswered_.insert({from.connection(), task.seq});
  const bool has_arguments = !record.plan.arguments.empty();
  // Its owner may not know yet where they are.
  const bool asks = has_arguments && world_.rng.chance(0.3);
  drive([&] { line_.add(incoming, asks ? 1 : 0, has_arguments && !asks); });
  if (asks)
    after(world_.between(100, 20'000), "arguments are found",
          [this, incoming] { drive([&] { line_.argument_placed(incoming, true); }); });
  next();
}

void SimWorker::fetch_arguments(const std::shared_ptr<worker::LineTask>& waiting) {
  auto& task = static_cast<Incoming&>(*waiting);
  task.ticket = ++last_ticket_;
  const auto& values = world_.ledger.task(task.id).plan.arguments;
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
  const auto& tasks = line_.tasks();
  auto task = std::find_if(tasks.begin(), tasks.end(), [ticket](const auto& one) {
    return static_cast<const Incoming&>(*one).ticket == ticket;
  });
  if (task == tasks.end() || (!whole && !world_.owners_seek_arguments))
    violation(fmt::format("worker #{} got arguments that it does not wait for", number()));
  static_cast<Incoming&>(**task).got = whole;
  (*task)->failed = !whole;
  drive([&] { line_.arguments_fetched(**task); });
  next();
}

void SimWorker::end_arguments(Incoming& task) {
  const uint64_t ticket = std::exchange(task.ticket, 0);
  const bool got = std::exchange(task.got, false);
  if (ticket == 0 || !store_->open()) return;
  const auto& values = world_.ledger.task(task.id).plan.arguments;
  if (!got) given_up_[ticket] = values;
  store_->send("end task", [ticket, values, got](Channel& at) {
    store_at(at).end_task(at, ticket, values, got);
  });
}

void SimWorker::give_up_arguments(worker::LineTask& task) {
  end_arguments(static_cast<Incoming&>(task));
}

void SimWorker::return_task(worker::LineTask& task) {
  refuse(static_cast<Incoming&>(task), TaskStatus::kNotStarted);
}

void SimWorker::refuse_call(worker::LineTask& task) {
  refuse(static_cast<Incoming&>(task), TaskStatus::kRefused);
}

void SimWorker::refuse(const Incoming& task, TaskStatus status) {
  unanswered_.erase({task.from->connection(), task.seq});
  task.from->send(
      "reply", [seq = task.seq, status](Channel& at) { owner_at(at).on_reply(at, {seq, status}); });
}

void SimWorker::answer(const Incoming& task, TaskStatus status, uint32_t duration_us, bool leaves) {
  unanswered_.erase({task.from->connection(), task.seq});
  replies_.send(task.from,
                [to = task.from, reply = TaskReply{task.seq, status, duration_us, leaves}] {
                  to->send("reply", [reply](Channel& at) { owner_at(at).on_reply(at, reply); });
                });
}

void SimWorker::keep(const ChannelPtr& from, int64_t keeps_us) {
  if (keeps_us == 0 || !from->open()) return;
  after(keeps_us, "drops a reference", [this, kept = replies_.keep(from)] { replies_.drop(kept); });
}

void SimWorker::next() {
  if (!alive() || line_.running() > 0 || leaving_.ends()) return;
  IncomingPtr incoming;
  drive([&] { incoming = std::static_pointer_cast<Incoming>(line_.next()); });
  if (!incoming) return;
  if (!incoming->from) return construct();
  check_turn(*incoming);
  if (!incoming->failed) return start(std::move(incoming));
  // No code of the user runs for it.
  end_arguments(*incoming);
  drive([&] { line_.ended(); });
  answer(*incoming, TaskStatus::kNoRoom, 0, false);
  next();
}

// Checks what no core can: that the task may start.
void SimWorker::check_turn(const Incoming& incoming) {
  auto wrong = [&](const std::string& why) {
    violation(fmt::format("worker #{} starts task {} {}", number(), incoming.id.hex(), why));
  };
  if (!incoming.from->open()) wrong("whose owner has closed its connection");
  if (!incoming.got && !incoming.failed && !world_.ledger.task(incoming.id).plan.arguments.empty())
    wrong("without its arguments");
  if (!is_actor()) return;
  if (leaving_.has_left()) wrong("although its actor has left");
  const auto first = unanswered_.lower_bound({incoming.from->connection(), 0});
  if (first->second != incoming.seq)
    wrong(fmt::format("although call {} of its caller came before call {}", first->second,
                      incoming.seq));
}

void SimWorker::check_calls(const TaskPlan& plan) {
  const int64_t calls = ++started_[plan.function];
  if (plan.max_calls > 0 && calls > plan.max_calls)
    violation(fmt::format("worker #{} runs function {} for the {}th time (max_calls={})", number(),
                          plan.function, calls, plan.max_calls));
}

// A store that has refused a task, and one that can never hold its arguments, is not for it.
void SimWorker::check_place(const TaskRecord& record) const {
  if (!world_.owners_seek_arguments || record.plan.arguments.empty()) return;
  if (record.refused_by.contains(node_.id()))
    violation(
        fmt::format("worker #{} gets a task whose arguments its store has refused", number()));
  std::map<ObjectId, int64_t> sizes;
  for (const StoredValue& value : record.plan.arguments) sizes[value.id] = value.size;
  int64_t total = 0;
  for (const auto& [id, size] : sizes) total += size;
  if (record.plan.home == node_.id() && total > node_.store()->capacity())
    violation(fmt::format("worker #{} gets a task whose arguments its owner's store cannot hold",
                          number()));
}

// The variables of its job, as far as the task has no others.
void SimWorker::check_variables(const TaskPlan& plan) const {
  const std::string& given = node_.processes().at(id_).kind.runtime_env;
  std::map<std::string, std::string> variables;
  if (!given.empty()) parse_json(given).at("env_vars").get_to(variables);
  if (variables != plan.variables)
    violation(fmt::format("worker #{} has the environment {} for a task with {} variables",
                          number(), given, plan.variables.size()));
}

void SimWorker::later(int64_t delay_us, const char* what, std::function<void()> run) {
  after(delay_us, what, [this, number = runs_, run = std::move(run)] {
    if (running_ && runs_ == number) run();
  });
}

void SimWorker::start(IncomingPtr incoming) {
  const TaskRecord& record = world_.ledger.started(incoming->id, number(), node_.id());
  ++runs_;
  running_ = Running{std::move(incoming), &record, clock_.now_us()};
  const TaskPlan& plan = record.plan;
  if (!is_actor()) {
    check_calls(plan);
    check_variables(plan);
    in_group_ = {plan.group, plan.bundle};
    check_start(world_, node_, *this);
  }
  check_computing(node_);
  if (record.executions <= plan.crashes) {
    later(plan.duration_us / 2, "task crashes",
          [this] { die({true, 0, SIGSEGV, "segmentation fault"}); });
  } else if (plan.child || plan.blocked_us > 0 || plan.makes > 0 || plan.exits_actor) {
    later(plan.duration_us / 2, "task is half-way", [this] { half_way(); });
  } else {
    later(plan.duration_us, "task done", [this] { done(); });
  }
}

void SimWorker::half_way() {
  const TaskPlan& plan = running_->record->plan;
  if (plan.exits_actor) {
    world_.ledger.actor_kill_requested(actor_);
    drive([&] { leaving_.exit_actor(); });
  }
  if (plan.makes == 0) return wait_for_something();
  made_ = {make_object_id(running_->incoming->id, static_cast<uint32_t>(world_.rng.next())),
           plan.makes, node_.id()};
  store_->send("create", [value = made_](Channel& at) { store_at(at).create(at, value); });
}

void SimWorker::on_room() { wait_for_something(); }

void SimWorker::wait_for_something() {
  const TaskPlan& plan = running_->record->plan;
  if (plan.child) {
    if (!plan.polls) blocked(true);
    const Incoming& task = *running_->incoming;
    task.from->send("submit a child",
                    [id = task.id](Channel& at) { owner_at(at).submit_child_of(id); });
    wait_for_child();
  } else if (plan.blocked_us > 0) {
    blocked(true);
    later(plan.blocked_us, "task resumes", [this, &plan] {
      blocked(false);
      later(plan.duration_us / 2, "task done", [this] { done(); });
    });
  } else {
    later(plan.duration_us / 2, "task done", [this] { done(); });
  }
}

void SimWorker::blocked(bool on) {
  ever_blocked_ = true;
  blocks_ = on;
  drive([&] { line_.thread_blocked(on); });
}

void SimWorker::tell_blocked(bool on) {
  if (store_) store_->send("blocked", [on](Channel& at) { store_at(at).set_blocked(at, on); });
  node_channel_->send("blocked", [on](Channel& at) { node_at(at).set_blocked(at, on); });
}

void SimWorker::wait_for_child() {
  const TaskRecord& parent = *running_->record;
  // The request to submit it may be lost with the connection, and then nobody waits for the result.
  if (parent.child.is_nil() && !running_->incoming->from->open()) return done();
  if (parent.child.is_nil() || !world_.ledger.task(parent.child).ended) {
    later(1000, "task looks for its child", [this] { wait_for_child(); });
    return;
  }
  if (!parent.plan.polls) blocked(false);
  later(parent.plan.duration_us / 2, "task done", [this] { done(); });
}

void SimWorker::finished(TaskStatus status) {
  if (blocks_) blocked(false);
  Running done = std::move(*running_);
  running_.reset();
  const TaskPlan& plan = done.record->plan;
  if (status == TaskStatus::kOk && done.record->executions <= plan.raises)
    status = plan.retries_errors ? TaskStatus::kErrorRetry : TaskStatus::kError;
  world_.ledger.stopped(done.incoming->id, number());
  if (!is_actor()) in_group_ = {};
  end_arguments(*done.incoming);
  if (made_.size > 0)
    store_->send("free",
                 [id = std::exchange(made_, {}).id](Channel& at) { store_at(at).free(at, id); });
  bool is_last = false;
  drive([&] {
    line_.ended();
    is_last = leaving_.call_ended(plan.max_calls, calls_[plan.function]);
  });
  keep(done.incoming->from, plan.keeps_us);
  answer(*done.incoming, status, static_cast<uint32_t>(clock_.now_us() - done.since_us), is_last);
  if (plan.needed_us > 0) {
    needed_until_us_ = std::max(needed_until_us_, clock_.now_us() + plan.needed_us);
    after(plan.needed_us, "not needed any more", [this] { leaving_.look(); });
  }
  if (leaving_.ends()) return die({true, 0, 0, ""});
  leaving_.look();
  next();
}

void SimWorker::take_back(Channel& from, int count) {
  drive([&] { line_.take_back(from, static_cast<size_t>(std::max(count, 0))); });
  leaving_.look();
}

void SimWorker::cancel(Channel& from, uint32_t seq, bool force, bool recursive) {
  bool waited = false;
  drive([&] { waited = line_.cancel(from, seq); });
  if (waited) {
    leaving_.look();
    return next();
  }
  if (!running_ || running_->incoming->caller != &from || running_->incoming->seq != seq) return;
  if (recursive) {
    from.send("cancel the child", [id = running_->incoming->id, force](Channel& at) {
      owner_at(at).tasks().cancel_child_of(id, force);
    });
  }
  // The process may be stopped or stuck.
  if (force && !is_actor()) {
    if (world_.rng.chance(0.8)) end_process({true, 1, 0, ""}, Exit::kOrderly);
    return;
  }
  // The code of the user may be deaf to it, or catch it.
  if (is_actor() || running_->record->plan.makes > 0 || world_.rng.chance(0.3)) return;
  later(world_.between(10, 5000), "task is interrupted",
        [this] { finished(TaskStatus::kInterrupted); });
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
  for (const auto& task : line_.tasks()) {
    const TaskRecord& record = world_.ledger.task(static_cast<const Incoming&>(*task).id);
    text += fmt::format(" {} [{}]", task->is_ready() ? "has" : "wants room for",
                        of(record, record.plan.arguments.size()));
  }
  return text + "\n";
}

// ---- requests of the node-manager

void SimWorker::ask_exit(bool graceful) {
  drive([&] { leaving_.asked(graceful); });
}

void SimWorker::leave() {
  if (const size_t left = unanswered_.size() + replies_.held(); left > 0)
    violation(
        fmt::format("worker #{} leaves with {} tasks that it has not answered", number(), left));
  if (!is_actor() && clock_.now_us() < needed_until_us_)
    violation(fmt::format("worker #{} leaves although others need what it owns", number()));
  node_channel_->send("leaving", [](Channel& at) { node_at(at).worker_leaves(at); });
  end_process({true, 0, 0, ""}, Exit::kOrderly);
}

// The code of the user is interrupted, but may run to its end.
void SimWorker::leave_at_once() {
  if (!running_) die({true, 0, 0, ""});
}

void SimWorker::ask_to_end() {
  proto::KillWorkerRequest request;
  request.set_worker_id(id_.binary());
  request.set_why(proto::ExitInfo::INTENTIONAL);
  request.set_message("exit_actor() was called");
  request.set_graceful(true);
  request.set_actor_id(actor_.binary());
  node_channel_->send("end this actor", [request](Channel& at) { node_at(at).kill(request); });
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
  created_ = std::move(answer);
  drive([&] {
    line_.become_actor(true);
    line_.add(std::make_shared<Incoming>(), 0, false);
  });
  next();
}

void SimWorker::construct() {
  const ActorPlan& plan = world_.ledger.actor(actor_).plan;
  after(plan.constructor_us, "constructor", [this, raises = plan.constructor_raises] {
    proto::CreateActorReply reply;
    reply.set_ok(!raises);
    if (raises) reply.mutable_failure()->set_kind(proto::ExitInfo::INIT_FAILED);
    drive([&] { line_.ended(); });
    replies_.send(nullptr, [this, reply] { created_(reply); });
    leaving_.look();
    next();
  });
}

}  // namespace rt::sim
