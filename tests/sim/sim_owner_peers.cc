// SimOwner: connections to workers and node-managers, and the requests to the head.
// Models worker/service/{peer_links,actor_client}.cc.
#include "tests/sim/sim_head.h"
#include "tests/sim/sim_node.h"
#include "tests/sim/sim_owner.h"

namespace rt::sim {

void SimOwner::with_peer(const proto::WorkerAddress& address, WithChannel done) {
  WorkerId id = WorkerId::from_binary(address.worker_id());
  NodeId node = NodeId::from_binary(address.node_id());
  Link& link = links_[id];
  if (link.channel && link.channel->open()) return done(link.channel);
  link.waiters.push_back(std::move(done));
  if (link.waiters.size() > 1) return;
  auto host_of = [this](const NodeId& n) {
    auto it = world_.nodes.find(n);
    return it == world_.nodes.end() ? host() : it->second->host();
  };
  // Connections to a worker go through its node's TCP port, so the node-manager must be alive,
  // too.
  auto find = [this, id, node]() -> Process* {
    auto worker = world_.workers.find(id);
    return worker == world_.workers.end() || !world_.nodes.contains(node) ? nullptr
                                                                          : worker->second;
  };
  network_.connect(
      *this, host_of(node), "worker link", find, [this, id](Result<ChannelPtr> channel) {
        Link& link = links_[id];
        std::vector<WithChannel> waiters;
        waiters.swap(link.waiters);
        if (!channel) {
          links_.erase(id);
        } else {
          link.channel = *channel;
          link_ids_[(*channel)->connection()] = id;
          (*channel)->on_closed = [this, id, raw = channel->get()] { link_closed(id, *raw); };
        }
        for (auto& waiter : waiters) waiter(channel);
      });
}

void SimOwner::link_closed(const WorkerId& id, Channel& channel) {
  link_ids_.erase(channel.connection());
  auto it = links_.find(id);
  if (it == links_.end() || it->second.channel.get() != &channel) return;
  Link link = std::move(it->second);
  links_.erase(it);
  drive([&] {
    if (const worker::Lease* lease = submitter_.find_lease(link.lease_key);
        lease && lease->state == worker::Lease::State::kReady) {
      for (const worker::Task* task : lease->in_flight)
        world_.ledger.incident(task->id, task == lease->in_flight.front());
    }
    if (link.lease_key) submitter_.lease_broken(link.lease_key);
    // A connection to an earlier incarnation of the actor says nothing about the present one.
    worker::ActorLink* actor = link.actor.is_nil() ? nullptr : calls_.find(link.actor);
    if (actor && actor->channel == &channel) calls_.connection_lost(link.actor, clock_.now());
  });
}

void SimOwner::with_node(const worker::NodeKey& node, WithChannel done) {
  if (node.is_nil() || node == node_.id()) {
    if (node_manager_ && node_manager_->open()) return done(node_manager_);
    return done(
        make_error(Code::kUnavailable, "the connection to this node's node-manager is lost"));
  }
  NodePeer& peer = node_peers_[node];
  if (peer.channel && peer.channel->open()) return done(peer.channel);
  auto known = node_hosts_.find(node);
  if (known == node_hosts_.end())
    return done(make_error(Code::kNodeDied, "not part of the cluster any more"));
  peer.waiters.push_back(std::move(done));
  if (peer.waiters.size() > 1) return;
  auto find = [this, node]() -> Process* {
    auto it = world_.nodes.find(node);
    return it == world_.nodes.end() ? nullptr : it->second;
  };
  network_.connect(*this, known->second, "owner connects", find,
                   [this, node](Result<ChannelPtr> channel) {
                     NodePeer& peer = node_peers_[node];
                     std::vector<WithChannel> waiters;
                     waiters.swap(peer.waiters);
                     if (channel) {
                       peer.channel = *channel;
                       node_ids_[(*channel)->connection()] = node;
                       (*channel)->on_closed = [this, node, id = (*channel)->connection()] {
                         node_ids_.erase(id);
                         node_peers_[node].channel.reset();
                         drive([&] { submitter_.node_gone(node); });
                       };
                     }
                     for (auto& waiter : waiters) waiter(channel);
                   });
}

// ---- actors

// Registering an actor again is harmless: the head answers with the registration it has.
void SimOwner::register_actor(const proto::RegisterActorRequest& request) {
  head_.with([this, request](Result<ChannelPtr> channel) {
    const ActorId id = ActorId::from_binary(request.spec().actor_id());
    if (!channel) return registration_failed(id, channel.error());
    (*channel)->call<proto::RegisterActorReply>(
        "register actor",
        [request](Channel& at, Channel::Answer<proto::RegisterActorReply> answer) {
          head_at(at).register_actor(request, std::move(answer));
        },
        [this, request, id](Result<proto::RegisterActorReply> reply) {
          if (reply) {
            registering_.erase(id);
            return drive([&] { calls_.link(id); });
          }
          if (may_recover(reply.error().code))
            return void(
                after(50'000, "register again", [this, request] { register_actor(request); }));
          registration_failed(id, reply.error());
        },
        60'000'000);
  });
}

void SimOwner::registration_failed(const ActorId& id, const Error& why) {
  registering_.erase(id);
  world_.ledger.actor_kill_requested(id);  // refused: the actor never starts
  dead_actors_[id].set_message(why.message);
  drive([&] {
    calls_.link(id);
    calls_.give_up(id, why.message);
  });
}

void SimOwner::kill_actor(const ActorId& actor, bool no_restart) {
  if (no_restart) world_.ledger.actor_kill_requested(actor);
  proto::KillActorRequest request;
  request.set_actor_id(actor.binary());
  request.set_no_restart(no_restart);
  request.set_why(proto::ExitInfo::KILLED_BY_USER);
  head_.with([request](Result<ChannelPtr> channel) {
    if (channel)
      (*channel)->call<proto::Empty>(
          "kill actor",
          [request](Channel& at, Channel::Answer<proto::Empty> answer) {
            head_at(at).kill_actor(request, std::move(answer));
          },
          [](Result<proto::Empty>) {});
  });
}

void SimOwner::subscribe_actor(const ActorId& id) {
  if (!head_.keep_actor(id)) return;
  head_.with([this, id](Result<ChannelPtr> channel) {
    if (!channel)
      return drive(
          [&] { calls_.give_up(id, "the head cannot be reached: " + channel.error().message); });
    proto::SubscribeRequest request;
    request.add_actor_ids(id.binary());
    OwnerHead::send_subscription(**channel, request, [this, id] {
      const worker::ActorLink* actor = calls_.find(id);
      if (actor && !actor->info.has_spec()) drive([&] { calls_.actor_unknown(id, clock_.now()); });
    });
  });
}

bool SimOwner::forget_actor(const ActorId& id) {
  head_.forget_actor(id);
  return true;
}

worker::ActorSink::Maker SimOwner::maker_of(const ActorId& id) const {
  return registering_.contains(id) ? Maker::kThisProcess : Maker::kAnother;
}

std::string SimOwner::unfinished_actors() const {
  std::map<ActorId, std::string> actors;
  calls_.for_each_call([&](const worker::Task&, const worker::ActorLink& actor, bool) {
    actors[actor.id] =
        fmt::format("; actor {} in epoch {}: link in state {}, the head said {}", actor.id.hex(),
                    actor.info.epoch(), static_cast<int>(actor.state),
                    actor.info.has_spec() ? proto::ActorState_Name(actor.info.state()) : "nothing");
  });
  std::string out;
  for (const auto& [id, text] : actors) out += text;
  return out;
}

void SimOwner::connect_actor(const worker::ActorLink& actor) {
  with_peer(actor.info.address(),
            [this, id = actor.id, epoch = actor.info.epoch(),
             worker = WorkerId::from_binary(actor.info.address().worker_id())](
                Result<ChannelPtr> channel) {
              worker::ActorLink* actor = calls_.find(id);
              if (!actor || actor->info.epoch() != epoch) return;
              drive([&] {
                if (!channel) return calls_.connection_lost(id, clock_.now());
                links_[worker].actor = id;
                calls_.connected(id, **channel);
              });
            });
}

void SimOwner::push_call(const worker::ActorLink& actor, const worker::Task& task) {
  static_cast<Channel*>(actor.channel)
      ->send("call", [message = TaskMessage{task.seq, task.id}](Channel& at) {
        worker_at(at).run(at, message);
      });
}

void SimOwner::query_actor(const ActorId& id) {
  head_.with([this, id](Result<ChannelPtr> channel) {
    if (!channel) return drive([&] { calls_.query_failed(id, clock_.now()); });
    proto::GetActorRequest request;
    request.set_actor_id(id.binary());
    (*channel)->call<proto::GetActorReply>(
        "get actor",
        [request](Channel& at, Channel::Answer<proto::GetActorReply> answer) {
          head_at(at).get_actor(request, std::move(answer));
        },
        [this, id](Result<proto::GetActorReply> reply) {
          if (!reply) return drive([&] { calls_.query_failed(id, clock_.now()); });
          if (reply->found() && reply->actor().state() == proto::ACTOR_DEAD)
            dead_actors_[id] = reply->actor().death();
          drive([&] {
            calls_.query_answered(id, reply->found() ? &reply->actor() : nullptr, clock_.now());
          });
        },
        10'000'000);
  });
}

}  // namespace rt::sim
