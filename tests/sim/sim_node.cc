#include "tests/sim/sim_node.h"

#include <fmt/core.h>
#include <signal.h>

#include "tests/sim/room_check.h"
#include "tests/sim/sim_head.h"
#include "tests/sim/sim_owner.h"

namespace rt::sim {
namespace {

constexpr int64_t kLeavesWithinUs = 1'000'000;  // from the deadline of a request to leave

node::NodeIdentity identity(World& world, int host, const ResourceSet& total) {
  node::NodeIdentity me;
  me.id = NodeId::random(world.rng);
  me.ip = fmt::format("10.0.{}.{}", host / 256, host % 256);
  me.port = 10000;
  me.total = total;
  me.seed = world.rng.next();
  return me;
}

}  // namespace

SimNode::SimNode(World& world, int host, const ResourceSet& total, bool is_head_node)
    : Process(world.clock, world.network, host),
      world_(world),
      me_(identity(world, host, total)),
      is_head_node_(is_head_node),
      core_(*this, world.settings, me_),
      head_(world, is_head_node, head_events()),
      sessions_(core_, head_, driving()),
      reports_(world, me_.id, head_,
               {driving(),
                [this](int64_t delay_us, const char* what, std::function<void()> run) {
                  after(delay_us, what, std::move(run));
                }}),
      // A process of the model ends in an instant.
      exit_waits_(core_, me_.ip, [](int) { return false; }),
      news_(world, me_.id, sessions_,
            {driving(), [this](const proto::OwnersGone& gone) { owners_gone(gone); },
             [this] { leave(Exit::kOrderly); }}),
      pace_(world.settings) {
  world_.nodes[me_.id] = this;
  if (const int64_t memory = world_.settings.object_store_memory; memory > 0)
    store_ = world_.adopt(std::make_unique<SimStore>(world_, host, me_.id, memory));
  after(0, "node starts", [this] {
    head_.start();
    drive([](node::NodeCore& core, Now now) { core.start(now); });
  });
}

NodeSessions::Drive SimNode::driving() {
  return [this](const std::function<void(node::NodeCore&, Now)>& event) {
    drive([&](node::NodeCore& core, Now now) { event(core, now); });
  };
}

void SimNode::check() {
  core_.check_invariants();
  if (!world_.ledger.groups().empty()) check_held_rooms(*this);
  // Only tasks that came back from get() may make available resources negative.
  std::erase_if(resumed_, [this](const WorkerId& id) { return !core_.view().worker(id); });
  ResourceSet resumed;
  for (const WorkerId& id : resumed_) {
    if (const node::Worker* worker = core_.view().worker(id))
      resumed.add(node::cpu_part(worker->held));
  }
  for (const auto& [name, units] : core_.view().resources().available().all()) {
    if (units < 0 && -units > resumed.units(name))
      violation(fmt::format("node #{} owes {} units of {}", number(), -units, name));
  }
  arm_tick();
}

void SimNode::arm_tick() {
  if (tick_alarm_.timer) return;
  ring_by(tick_alarm_, core_.next_tick_us(), "node tick",
          [this] { drive([](node::NodeCore& core, Now now) { core.tick(now); }); });
}

std::vector<SimWorker*> SimNode::workers() const {
  std::vector<SimWorker*> out;
  for (const auto& [id, worker] : processes_) out.push_back(worker);
  return out;
}

std::string SimNode::busy() const {
  ResourceSet held;
  for (const auto& [id, actor] : core_.view().actors()) held.add(actor.lifetime);
  held.add(core_.view().resources().available());
  if (!core_.view().leases().leases().empty())
    return fmt::format("{} leases are out", core_.view().leases().leases().size());
  if (!core_.view().leases().nobody_waits()) return "a demand waits";
  if (!(held == me_.total))
    return fmt::format("{} of {} are accounted for", held.to_string(), me_.total.to_string());
  for (const auto& [id, worker] : processes_) {
    if (worker->load() > 0) return fmt::format("worker #{} works", worker->number());
  }
  if (store_ && !store_->at_rest()) return "values are in use in the store";
  return "";
}

// ---- connections

void SimNode::accepted(const ChannelPtr& channel) {
  sessions_.add(channel);
  channel->on_closed = [this, id = channel->connection()] { session_closed(id); };
}

void SimNode::session_closed(uint64_t connection) {
  const auto session = sessions_.remove(connection);
  if (!session) return;
  drive([&](node::NodeCore& core, Now now) {
    core.owner_closed(connection, now);
    if (!session->worker.is_nil()) core.worker_disconnected(session->worker, now);
  });
  if (session->is_driver) news_.news().job_finished(session->job);
  sessions_.left(connection);
}

void SimNode::owners_gone(const proto::OwnersGone& gone) {
  if (!store_) return;
  after(world_.between(10, 60), "owners gone", [this, gone] { store_->owners_gone(gone); });
}

// ---- owners and workers

void SimNode::set_demand(Channel& from, const proto::LeaseDemand& demand) {
  // Children belong to the owner of their parents here, which is no process of a node.
  drive(
      [&](node::NodeCore& core, Now now) { core.set_demand(from.connection(), {}, demand, now); });
}

void SimNode::return_lease(Channel& from, const proto::LeaseReturn& request) {
  drive([&](node::NodeCore& core, Now now) { core.return_lease(from.connection(), request, now); });
}

void SimNode::set_blocked(Channel& from, bool blocked) {
  const WorkerId worker = sessions_.process(from.connection());
  if (worker.is_nil()) return;
  if (!blocked) resumed_.insert(worker);
  drive([&](node::NodeCore& core, Now now) { core.set_blocked(worker, blocked, now); });
}

void SimNode::worker_leaves(Channel& from) {
  const WorkerId worker = sessions_.process(from.connection());
  if (worker.is_nil()) return;
  drive([&](node::NodeCore& core, Now now) {
    core.worker_leaves(worker, node::NodeCore::Leaving::kWorkIsDone, now);
  });
}

void SimNode::await_exit(const WorkerId& id, Answer<proto::WorkerExitReply> answer) {
  exit_waits_.ask(id, std::move(answer), clock_.now());
  arm_exits();
}

void SimNode::arm_exits() {
  ring_by(exit_alarm_, exit_waits_.next_tick_us(), "exits awaited", [this] {
    exit_waits_.tick(clock_.now());
    arm_exits();
  });
}

void SimNode::create_actor(Channel& from, const proto::CreateActorRequest& request,
                           Answer<proto::CreateActorReply> answer) {
  head_calls_.hold(request, [from = from.shared_from_this(),
                             answer = std::move(answer)](const proto::CreateActorReply& reply) {
    const bool heard = from->open();
    answer(reply);
    return heard;
  });
  drive([&](node::NodeCore& core, Now now) { core.create_actor(request, now); });
}

void SimNode::kill(const proto::KillWorkerRequest& request) {
  drive([&](node::NodeCore& core, Now now) { core.kill(request, now); });
}

void SimNode::prepare_bundles(const proto::PrepareBundlesRequest& request,
                              Answer<proto::PrepareBundlesReply> answer) {
  head_calls_.hold(request, [answer = std::move(answer)](const proto::PrepareBundlesReply& reply) {
    answer(reply);
    return true;
  });
  drive([&](node::NodeCore& core, Now now) { core.prepare_bundles(request, now); });
}

void SimNode::return_bundles(const proto::ReturnBundlesRequest& request) {
  drive([&](node::NodeCore& core, Now now) { core.return_bundles(request, now); });
}

// ---- decisions of the core

void SimNode::grant(node::OwnerId owner, const proto::LeaseGrant& grant) {
  check_takes_work("grants a lease");
  auto process = unreaped_.find(WorkerId::from_binary(grant.worker().worker_id()));
  if (process != unreaped_.end())
    process->second.gpus.assign(grant.gpu_ids().begin(), grant.gpu_ids().end());
  if (Channel* to = sessions_.channel(owner))
    to->send("grant", [grant](Channel& at) { owner_at(at).on_grant(at, grant); });
}

void SimNode::revoke(node::OwnerId owner, const proto::LeaseRevoke& revoke) {
  if (Channel* to = sessions_.channel(owner))
    to->send("revoke", [revoke](Channel& at) { owner_at(at).on_revoke(at, revoke); });
}

void SimNode::redirect(node::OwnerId owner, const proto::LeaseRedirect& redirect) {
  if (Channel* to = sessions_.channel(owner))
    to->send("redirect", [redirect](Channel& at) { owner_at(at).on_redirect(at, redirect); });
}

void SimNode::notice(node::OwnerId owner, const proto::LeaseNotice& notice) {
  if (Channel* to = sessions_.channel(owner))
    to->send("notice", [notice](Channel& at) { owner_at(at).on_notice(notice); });
}

void SimNode::spawn_worker(const WorkerId& id, const node::WorkerKind& kind) {
  spawning_.insert(id);
  bool fails = world_.rng.chance(world_.spawn_failures);
  after(world_.between(500, 15'000), "spawn", [this, id, fails, kind] {
    spawning_.erase(id);
    if (fails)
      return drive([&](node::NodeCore& core, Now now) {
        core.worker_start_failed(id, "fork: Resource temporarily unavailable", now);
      });
    int pid = ++last_pid_;
    if (doomed_.erase(id)) {
      drive([&](node::NodeCore& core, Now now) { core.worker_spawned(id, pid, now); });
      return process_ended(id, {true, 0, SIGKILL, ""});
    }
    processes_[id] = world_.adopt(std::make_unique<SimWorker>(world_, *this, id, pid));
    unreaped_[id] = {processes_[id], kind, {}};
    drive([&](node::NodeCore& core, Now now) { core.worker_spawned(id, pid, now); });
  });
}

void SimNode::kill_worker(const WorkerId& id) {
  if (spawning_.contains(id)) {
    doomed_.insert(id);
  } else if (auto it = processes_.find(id); it != processes_.end()) {
    it->second->die({true, 0, SIGKILL, ""});
  }
}

void SimNode::process_ended(const WorkerId& id, const node::ProcessEnd& end) {
  processes_.erase(id);
  after(world_.between(20, world_.reaped_within_us), "reaped", [this, id, end] {
    unreaped_.erase(id);
    drive([&](node::NodeCore& core, Now now) { core.worker_exited(id, end, now); });
  });
}

void SimNode::ask_exit(const WorkerId& id, const proto::KillWorkerRequest& request) {
  if (Channel* to = sessions_.channel_of(id))
    to->call<proto::Empty>(
        "exit",
        [graceful = request.graceful()](Channel& at, Answer<proto::Empty> answer) {
          answer(proto::Empty());
          worker_at(at).ask_exit(graceful);
        },
        [this, id](Result<proto::Empty> heard) {
          if (!heard) return;
          drive([&](node::NodeCore& core, Now now) {
            core.worker_leaves(id, node::NodeCore::Leaving::kHasHeard, now);
          });
        });
}

void SimNode::start_actor(const WorkerId& id, const proto::CreateActorRequest& request) {
  check_takes_work("starts an actor");
  Answer<proto::CreateActorReply> done = [this,
                                          actor = ActorId::from_binary(request.spec().actor_id()),
                                          epoch = request.epoch()](
                                             Result<proto::CreateActorReply> reply) {
    drive([&](node::NodeCore& core, Now now) { core.actor_start_done(actor, epoch, reply, now); });
  };
  Channel* to = sessions_.channel_of(id);
  if (!to)
    return void(after(0, "no worker",
                      [done] { done(make_error(Code::kUnavailable, "its worker is gone")); }));
  const ActorId chosen_for = ActorId::from_binary(request.spec().actor_id());
  if (auto process = processes_.find(id); process != processes_.end()) {
    process->second->choose_for(chosen_for);
  } else {
    world_.ledger.actor_start_lost(chosen_for);  // it has ended, and the node does not know yet
  }
  to->call<proto::CreateActorReply>(
      "start actor",
      [request](Channel& at, Answer<proto::CreateActorReply> answer) {
        worker_at(at).start_actor(request, std::move(answer));
      },
      done);
}

void SimNode::actor_created(const ActorId& id, int64_t epoch,
                            const proto::CreateActorReply& reply) {
  const node::HeadCalls::Unheard unheard = head_calls_.actor_created(id, epoch, reply);
  if (unheard.started)
    head_.send_reliably<proto::ActorStarted>(
        "actor started",
        [](Channel& at, const proto::ActorStarted& r, Answer<proto::Empty> a) {
          head_at(at).actor_started(at, r, std::move(a));
        },
        *unheard.started);
  if (unheard.died) actor_died(*unheard.died);
  if (unheard.refused) report_end(*unheard.refused, node::HeadQueue::Until::kNextRegistration);
}

void SimNode::actor_died(const proto::ActorDied& died) {
  report_end(died, node::HeadQueue::Until::kDelivered);
}

void SimNode::report_end(const proto::ActorDied& died, node::HeadQueue::Until until) {
  head_.send_reliably<proto::ActorDied>(
      "actor died",
      [](Channel& at, const proto::ActorDied& r, Answer<proto::Empty> a) {
        head_at(at).actor_died(at, r, std::move(a));
      },
      died, until);
}

void SimNode::bundles_prepared(const GroupId& group, int64_t epoch,
                               const proto::PrepareBundlesReply& reply) {
  head_calls_.bundles_prepared(group, epoch, reply);
}

void SimNode::worker_died(const WorkerId& id, const proto::ExitInfo&) {
  world_.links.process_ended(me_.id, id);
  exit_waits_.ended(id);
  deaths_.died(id, clock_.now());
  arm_deaths();
}

void SimNode::arm_deaths() {
  ring_by(death_alarm_, deaths_.next_tick_us(), "dead workers", [this] {
    if (const auto told = deaths_.tick(clock_.now())) {
      head_.send_reliably<proto::DeadWorkers>(
          "dead workers",
          [](Channel& at, const proto::DeadWorkers& r, Answer<proto::Empty> a) {
            head_at(at).dead_workers(at, r, std::move(a));
          },
          told->head);
      owners_gone(told->store);
    }
    arm_deaths();
  });
}

// ---- end of the node

void SimNode::leave(Exit how) {
  if (!alive()) return;
  world_.nodes.erase(me_.id);
  world_.links.node_ended(me_.id);
  end(how);
  core_.stop();
  reports_.node_ended();
  std::vector<SimWorker*> left = workers();
  for (SimWorker* worker : left) worker->die({true, 0, SIGKILL, ""});
  if (store_) store_->stop();
  if (on_gone) on_gone();
}

void SimNode::drain(const proto::DrainRequest& request) {
  if (!alive()) return;
  const Result<proto::DrainReply> reply = drain_watch_.ask(request, 0, clock_.now());
  if (!reply) violation("a node cannot be asked to leave: " + reply.error().message);
  if (!reply->accepted()) return;
  leaves_by_us_ = clock_.now_us() + request.deadline_ms() * 1000;
  drive([&](node::NodeCore& core, Now now) { core.drain(*drain_watch_.accepted(), now); });
  arm_drain();
  after(request.deadline_ms() * 1000 + kLeavesWithinUs, "node has left", [this] {
    if (alive() && clock_.now_us() > leaves_by_us_ + kLeavesWithinUs / 2)
      violation(fmt::format("node #{} is there still after its deadline", number()));
  });
}

void SimNode::arm_drain() {
  ring_by(drain_alarm_, drain_watch_.next_tick_us(), "drain",
          [this] { drain_watch_.tick(clock_.now()) ? leave_drained() : arm_drain(); });
}

void SimNode::leave_drained() {
  for (SimWorker* worker : workers()) {
    // Nobody waits for the task of a worker that was asked to leave.
    const node::Worker* known = core_.view().worker(worker->id());
    const bool leaves = !known || known->state == node::WorkerState::kDying;
    if (clock_.now_us() < leaves_by_us_ && !leaves && worker->load() > 0)
      violation(fmt::format("node #{} leaves before its deadline while worker #{} works", number(),
                            worker->number()));
  }
  if (Channel* head = head_.channel()) {
    proto::UnregisterNodeRequest request;
    request.set_node_id(me_.id.binary());
    request.set_reason(drain_watch_.accepted()->reason());
    head->send("unregister", [request](Channel& at) { head_at(at).unregister_node(at, request); });
  }
  leave(Exit::kOrderly);
}

void SimNode::check_takes_work(const char* what) const {
  if (core_.view().drain()) violation(fmt::format("node #{} is leaving and {}", number(), what));
}

void SimNode::crash() { leave(Exit::kAbrupt); }
void SimNode::kill_manager() { leave(Exit::kOrderly); }

}  // namespace rt::sim
