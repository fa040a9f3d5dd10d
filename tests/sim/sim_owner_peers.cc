// SimOwner: connections to workers and node-managers. Models
// worker/service/{peer_links,node_directory}.cc.
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
    worker::ActorLink* actor = link.actor.is_nil() ? nullptr : actors_.calls().find(link.actor);
    if (actor && actor->channel == &channel)
      actors_.calls().connection_lost(link.actor, clock_.now());
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

}  // namespace rt::sim
