#include "tests/sim/sim_owner.h"

#include <fmt/core.h>

#include "tests/sim/sim_head.h"
#include "tests/sim/sim_node.h"
#include "worker/core/death.h"
#include "worker/core/lease_demand.h"

namespace rt::sim {

SimOwner::SimOwner(World& world, SimNode& node, const JobId& outlived)
    : Process(world.clock, world.network, node.host()),
      world_(world),
      node_(node),
      outlived_(outlived),
      head_(world, head_environment()),
      groups_(world, group_environment()),
      submitter_(*this, world.settings, &groups_.view()),
      leases_(world, submitter_, number()),
      actors_(world, head_, actor_environment()),
      arguments_(world, node.id(), world.owners_seek_arguments ? node.store()->capacity() : 0),
      tasks_(world, {submitter_, actors_, groups_, arguments_}, task_environment()) {
  after(world_.between(0, 2000), "driver starts", [this] { join(); });
}

SimOwner::~SimOwner() = default;

OwnerHead::Environment SimOwner::head_environment() {
  OwnerHead::Environment out;
  out.connect = [this](WithChannel done) {
    network_.connect(
        *this, kHeadHost, "owner at head", [this] { return listening_head(world_); },
        std::move(done));
  };
  out.ring_by = [this](Alarm& alarm, int64_t at_us, std::function<void()> ring) {
    ring_by(alarm, at_us, "head again", std::move(ring));
  };
  out.opened = [this] { groups_.head_is_back(); };
  out.needed = [this] { return groups_.need_head(); };
  out.renewed = [this] { drive([&] { actors_.calls().subscriptions_renewed(clock_.now()); }); };
  return out;
}

OwnerActors::Environment SimOwner::actor_environment() {
  OwnerActors::Environment out;
  out.with_peer = [this](const proto::WorkerAddress& address, WithChannel done) {
    with_peer(address, std::move(done));
  };
  out.use_for = [this](const WorkerId& worker, const ActorId& id) { links_[worker].actor = id; };
  out.after = [this](int64_t delay_us, const char* what, std::function<void()> run) {
    after(delay_us, what, std::move(run));
  };
  out.drive = [this](const std::function<void()>& event) { drive(event); };
  out.fail = [this](worker::Task* task, const proto::ErrorValue& error) { fail_task(task, error); };
  return out;
}

OwnerTasks::Environment SimOwner::task_environment() {
  OwnerTasks::Environment out;
  out.owner = number();
  out.node = node_.id();
  out.after = [this](int64_t delay_us, const char* what, std::function<void()> run) {
    after(delay_us, what, std::move(run));
  };
  out.drive = [this](const std::function<void()>& event) { drive(event); };
  out.kill_worker = [this](const worker::Lease& lease) {
    proto::KillWorkerRequest request;
    request.set_worker_id(lease.worker.worker_id());
    request.set_why(proto::ExitInfo::KILLED_BY_USER);
    request.set_message("its task was cancelled with force=True");
    with_node(lease.node, [request](Result<ChannelPtr> channel) {
      if (channel)
        (*channel)->send("kill worker", [request](Channel& at) { node_at(at).kill(request); });
    });
  };
  return out;
}

OwnerGroups::Environment SimOwner::group_environment() {
  OwnerGroups::Environment out;
  out.owner = number();
  out.with_head = [this](WithChannel done) { head_.with(std::move(done)); };
  out.after = [this](int64_t delay_us, const char* what, std::function<void()> run) {
    after(delay_us, what, std::move(run));
  };
  out.drive = [this](const std::function<void(worker::Submitter&)>& event) {
    drive([&] { event(submitter_); });
  };
  return out;
}

void SimOwner::join() {
  network_.connect(
      *this, host(), "driver connects", [this]() -> Process* { return &node_; },
      [this](Result<ChannelPtr> channel) {
        if (!channel) return leave(Exit::kOrderly);
        node_manager_ = *channel;
        // A driver cannot go on without its node.
        node_manager_->on_closed = [this] { leave(Exit::kOrderly); };
        if (outlived_.is_nil()) return register_job();
        last_task_ = number() << 32;  // its driver has used the first numbers
        joined_as(outlived_, WorkerId::random(world_.rng));
      });
}

void SimOwner::register_job() {
  node_manager_->call<proto::RegisterWorkerReply>(
      "register driver",
      [pid = static_cast<int>(number())](Channel& at,
                                         Channel::Answer<proto::RegisterWorkerReply> answer) {
        node_at(at).register_driver(at, pid, std::move(answer));
      },
      [this](Result<proto::RegisterWorkerReply> reply) {
        if (!reply) return void(after(100'000, "join again", [this] { register_job(); }));
        const JobId job = JobId::from_binary(reply->job_id());
        joined_as(job, driver_worker_id(job));
      });
}

void SimOwner::joined_as(const JobId& job, const WorkerId& id) {
  job_ = job;
  id_ = id;
  groups_.view().set_here(node_.id());
  proto::SubscribeRequest logs;
  logs.set_logs_of_job(job_.binary());
  logs.set_errors(true);
  head_.subscribe(logs);
  auto waiting = std::move(not_joined_);
  not_joined_.clear();
  for (const TaskPlan& plan : waiting) submit(plan);
}

void SimOwner::leave(Exit how) {
  if (!alive()) return;
  end(how);
  world_.ledger.owner_ended(number());
  actors_.owner_ended();
}

void SimOwner::arm_ticks() {
  ring_by(submitter_alarm_, submitter_.next_tick_us(), "submitter tick",
          [this] { drive([this] { submitter_.tick(clock_.now()); }); });
  ring_by(calls_alarm_, actors_.calls().next_tick_us(), "actor calls tick",
          [this] { drive([this] { actors_.calls().tick(clock_.now()); }); });
}

// ---- the driver's program

TaskId SimOwner::submit(const TaskPlan& plan) {
  if (!alive()) return TaskId::nil();
  if (!joined()) {
    not_joined_.push_back(plan);
    return TaskId::nil();
  }
  const TaskId id = make_task_id(++last_task_, job_);
  tasks_.submit(plan, id, last_task_);
  return id;
}

void SimOwner::submit_child_of(const TaskId& parent) {
  const TaskRecord& record = world_.ledger.task(parent);
  TaskPlan plan = *record.plan.child;
  const ActorPlan* actor =
      record.actor.is_nil() ? nullptr : &world_.ledger.actor(record.actor).plan;
  const GroupId group = actor ? actor->group : record.plan.group;
  const bool captures = actor ? actor->captures : record.plan.captures;
  if (captures && plan.group.is_nil() && !plan.placed_explicitly) {
    plan.group = group;
    plan.bundle = -1;
    plan.captures = true;
  }
  const TaskId child = submit(plan);
  if (!child.is_nil()) world_.ledger.child_submitted(parent, child);
}

ActorId SimOwner::create_actor(const ActorPlan& plan) {
  if (!joined()) violation("an actor is created before the driver has joined");
  ActorId id = make_actor_id(job_, world_.rng.next(), static_cast<uint32_t>(world_.rng.next()));
  proto::ActorSpec spec;
  spec.set_actor_id(id.binary());
  spec.set_job_id(job_.binary());
  spec.mutable_owner()->set_worker_id(id_.binary());
  spec.mutable_owner()->set_node_id(node_.id().binary());
  actors_.create(std::move(spec), plan);
  return id;
}

GroupId SimOwner::create_group(const GroupPlan& plan) {
  if (!joined()) violation("a group is created before the driver has joined");
  const GroupId id = make_group_id(job_, world_.rng);
  world_.ledger.groups().created(id, plan, number());
  proto::GroupSpec spec;
  spec.set_group_id(id.binary());
  spec.set_job_id(job_.binary());
  spec.set_name(plan.name);
  spec.set_ray_namespace("sim");
  spec.set_strategy(plan.strategy);
  for (const ResourceSet& bundle : plan.bundles)
    bundle.to_proto(spec.add_bundles()->mutable_resources());
  spec.set_detached(plan.detached);
  spec.mutable_owner()->set_worker_id(id_.binary());
  spec.mutable_owner()->set_node_id(node_.id().binary());
  groups_.create(spec);
  return id;
}

TaskId SimOwner::call(const ActorId& actor, const TaskPlan& plan) {
  if (!alive()) return TaskId::nil();
  // Other drivers call the actor as well.
  const TaskId id = make_task_id((number() << 32) + ++last_task_, actor);
  tasks_.call(plan, id, last_task_);
  return id;
}

void SimOwner::return_idle_leases() {
  drive([&] { submitter_.return_idle_leases(); });
  leases_.check_none_idle();
}

// ---- messages

worker::NodeKey SimOwner::node_of(const Channel& channel) const {
  if (&channel == node_manager_.get()) return worker::NodeKey::nil();
  auto it = node_ids_.find(channel.connection());
  return it == node_ids_.end() ? worker::NodeKey::nil() : it->second;
}

// Checks that answers do not exceed the demand, even if an answer and a new demand cross on the
// way.
void SimOwner::answered(const worker::NodeKey& node, uint64_t class_id, int leases) {
  Asked& asked = asked_[{node, class_id}];
  asked.answered += leases;
  if (asked.answered > asked.allowed)
    violation(
        fmt::format("owner #{}: {} leases of class {} were granted or redirected, {} asked for",
                    number(), asked.answered, class_id, asked.allowed));
}

void SimOwner::on_grant(Channel& from, const proto::LeaseGrant& grant) {
  answered(node_of(from), grant.class_id(), 1);
  drive([&] {
    submitter_.lease_granted(node_of(from), grant.class_id(), grant.lease_id(), grant.worker(),
                             grant.pid(), clock_.now());
  });
}

void SimOwner::on_revoke(Channel& from, const proto::LeaseRevoke& revoke) {
  std::vector<uint64_t> ids(revoke.lease_ids().begin(), revoke.lease_ids().end());
  drive([&] { submitter_.leases_revoked(node_of(from), ids); });
}

void SimOwner::on_redirect(Channel& from, const proto::LeaseRedirect& redirect) {
  NodeId node = NodeId::from_binary(redirect.node().node_id());
  answered(node_of(from), redirect.class_id(), redirect.count());
  if (auto it = world_.nodes.find(node); it != world_.nodes.end())
    node_hosts_[node] = it->second->host();  // its address
  const worker::NodeKey key = node == node_.id() ? worker::NodeKey::nil() : node;
  drive([&] {
    submitter_.redirected(node_of(from), redirect.class_id(), key, redirect.count(),
                          redirect.answer(), clock_.now());
  });
}

void SimOwner::on_notice(const proto::LeaseNotice& notice) {
  notices_.push_back(notice.message());
  if (notice.fatal())
    drive([&] {
      submitter_.class_failed(notice.class_id(),
                              make_error(static_cast<Code>(notice.code()), notice.message()));
    });
}

void SimOwner::on_reply(Channel& from, const TaskReply& reply) {
  auto found = link_ids_.find(from.connection());
  if (found == link_ids_.end()) return;
  const Link& link = links_.at(found->second);
  drive([&] {
    if (tasks_.on_reply(link.lease_key, link.actor, reply)) return;
    // A late reply is legal only for an actor call that was failed or queued again when the head
    // announced the actor's restart.
    if (link.actor.is_nil())
      violation(
          fmt::format("owner #{}: a reply to task {} that is not in flight", number(), reply.seq));
    from.close();
  });
}

void SimOwner::on_head_event(const proto::HeadEvent& event) {
  for (const auto& node : event.nodes()) {
    NodeId id = NodeId::from_binary(node.node_id());
    if (!node.alive()) {
      node_hosts_.erase(id);
    } else if (auto it = world_.nodes.find(id); it != world_.nodes.end()) {
      node_hosts_[id] = it->second->host();
    }
  }
  for (const auto& info : event.actors()) actors_.update(info);
  for (const auto& group : event.groups()) {
    for (const std::string& holder : group.bundle_nodes()) {
      // Its address.
      if (holder.empty()) continue;
      const NodeId id = NodeId::from_binary(holder);
      if (auto it = world_.nodes.find(id); it != world_.nodes.end())
        node_hosts_[id] = it->second->host();
    }
    groups_.update(group);
  }
  for (const auto& notice : event.notices()) notices_.push_back(notice.text());
}

// ---- decisions of the submitter

void SimOwner::send_demand(const worker::NodeKey& node, const worker::SchedulingClass& c, int want,
                           int64_t backlog, const std::string& what, uint64_t last_answer) {
  if (node == node_.id()) violation("the own node is asked for leases as if it was another");
  proto::LeaseDemand demand = worker::lease_demand(node, c, want, backlog, what);
  demand.mutable_job()->set_job_id(job_.binary());
  demand.mutable_job()->set_outlives_job(!outlived_.is_nil());
  demand.set_last_answer(last_answer);
  Asked& asked = asked_[{node, c.id}];
  asked.allowed = std::max(asked.allowed, asked.answered + want);
  with_node(node, [this, node, demand](Result<ChannelPtr> channel) {
    if (channel)
      return (*channel)->send("demand",
                              [demand](Channel& at) { node_at(at).set_demand(at, demand); });
    // The node has just died, which others may not know yet.
    constexpr int64_t kPauseUs = 50'000;
    if (node.is_nil() || demand.want() == 0 || !given_up_.insert(node).second) return;
    after(kPauseUs, "demand goes elsewhere", [this, node] {
      given_up_.erase(node);
      drive([&] { submitter_.node_gone(node); });
    });
  });
}

void SimOwner::connect_lease(const worker::Lease& lease) {
  leases_.begins(lease.key);
  with_peer(lease.worker,
            [this, key = lease.key,
             id = WorkerId::from_binary(lease.worker.worker_id())](Result<ChannelPtr> channel) {
              if (!submitter_.find_lease(key)) return;
              drive([&] {
                if (!channel) return submitter_.lease_broken(key);
                links_[id].lease_key = key;
                submitter_.lease_ready(key, **channel, clock_.now());
              });
            });
}

void SimOwner::push_task(const worker::Lease& lease, const worker::Task& task) {
  world_.ledger.sent(task.id);
  static_cast<Channel*>(lease.channel)
      ->send("task", [message = TaskMessage{task.seq, task.id}](Channel& at) {
        worker_at(at).run(at, message);
      });
}

void SimOwner::take_back(const worker::Lease& lease, int count) {
  static_cast<Channel*>(lease.channel)->send("take back", [count](Channel& at) {
    worker_at(at).take_back(at, count);
  });
}

void SimOwner::return_lease(const worker::Lease& lease, bool worker_failed) {
  leases_.ends(lease.key);
  if (lease.state != worker::Lease::State::kBroken) {
    auto it = links_.find(WorkerId::from_binary(lease.worker.worker_id()));
    if (it != links_.end() && it->second.lease_key == lease.key) it->second.lease_key = 0;
  }
  proto::LeaseReturn request;
  request.set_lease_id(lease.id);
  request.set_worker_failed(worker_failed);
  request.set_worker_leaves(lease.leaving);
  with_node(lease.node, [request](Result<ChannelPtr> channel) {
    if (channel)
      (*channel)->send("return lease",
                       [request](Channel& at) { node_at(at).return_lease(at, request); });
  });
}

void SimOwner::ask_exit(const worker::Lease& lease) {
  WorkerId worker = WorkerId::from_binary(lease.worker.worker_id());
  Channel::Answer<proto::WorkerExitReply> answer =
      [this, key = lease.key, process = lease.worker,
       node = lease.node](Result<proto::WorkerExitReply> reply) {
        drive([&] { submitter_.worker_exit(key, worker::exit_as_told(reply, process, node)); });
      };
  with_node(lease.node, [worker, answer](Result<ChannelPtr> channel) {
    if (!channel) return answer(channel.error());
    (*channel)->call<proto::WorkerExitReply>(
        "get worker exit",
        [worker](Channel& at, Channel::Answer<proto::WorkerExitReply> reply) {
          node_at(at).await_exit(worker, std::move(reply));
        },
        answer, 5'000'000);
  });
}

}  // namespace rt::sim
