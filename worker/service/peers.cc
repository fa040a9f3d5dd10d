// Connections to other workers, node-managers and the head. They are opened on first use, kept,
// and shared by everything that flows to the same peer.
#include <fmt/core.h>

#include "worker/service/actor_creations.h"
#include "worker/service/groups.h"
#include "worker/service/impl.h"
#include "worker/service/services.h"

namespace rt::worker {

std::shared_ptr<Link> Worker::Impl::adopt_link(const std::shared_ptr<rpc::Connection>& connection,
                                               bool inbound) {
  auto link = std::make_shared<Link>();
  link->connection = connection;
  link->peer = WorkerId::from_binary(connection->peer().id);
  if (inbound && !connection->peer().job_config.empty()) {
    link->job_config = std::make_unique<proto::JobConfig>();
    if (!link->job_config->ParseFromString(connection->peer().job_config))
      link->job_config->Clear();
  }
  notices.met_build(connection->peer().build);
  connection->add_service(worker_rpc.get());
  process_services->offer(*connection);
  std::weak_ptr<Link> weak = link;
  connection->set_flat_handler([this, weak](uint32_t type, Bytes body) {
    if (auto l = weak.lock()) on_flat(l, type, body);
  });
  connection->set_closed_handler([this, weak](const Error& why) {
    if (auto l = weak.lock()) link_closed(l, why);
  });
  links.insert(link);
  Peer& peer = peers[link->peer];
  if (!peer.link || !peer.link->open) peer.link = link;
  return link;
}

void Worker::Impl::on_flat(const std::shared_ptr<Link>& link, uint32_t type, Bytes body) {
  switch (type) {
    case wire::kReplies: on_replies(link, body); break;
    case wire::kTasks: on_tasks(link, body); break;
    case wire::kTakeBack: on_take_back(link, body); break;
    case wire::kCancel: on_cancel(link, body); break;
    case wire::kItems: on_items(link, body); break;
    case wire::kItemsTaken: on_items_taken(link, body); break;
    default:
      link->connection->close(
          make_error(Code::kProtocol, fmt::format("unknown flat frame type {}", type)));
  }
}

void Worker::Impl::link_closed(const std::shared_ptr<Link>& link, const Error& why) {
  if (!link->open) return;
  link->open = false;
  links.erase(link);
  auto it = peers.find(link->peer);
  if (it != peers.end() && it->second.link == link) {
    // Another connection with the same peer may take over.
    it->second.link.reset();
    for (const auto& other : links) {
      if (other->peer == link->peer && other->open) it->second.link = other;
    }
    bool gone = !it->second.link;
    if (gone && it->second.waiters.empty()) peers.erase(it);
    if (gone) refs->borrower_gone(link->peer);
  }
  // Tasks that the peer sent and that have not started die with the connection.
  std::erase_if(incoming, [&](const auto& task) { return task->link == link; });
  if (link->lease_key) submitter->lease_broken(link->lease_key);
  if (ActorLink* actor = link->actor.is_nil() ? nullptr : actors->find(link->actor);
      actor && actor->connection == link.get()) {
    // Does not apply when this was the connection to an earlier life of the actor.
    actors->connection_lost(link->actor);
  }
  (void)why;
}

void Worker::Impl::with_peer(const proto::WorkerAddress& address, WithLink done) {
  WorkerId id = WorkerId::from_binary(address.worker_id());
  Peer& peer = peers[id];
  if (peer.link && peer.link->open) {
    done(peer.link);
    return;
  }
  peer.waiters.push_back(std::move(done));
  if (peer.waiters.size() > 1) return;
  rpc::Target target;
  bool local = address.node_id() == context.node_id.view() && !address.socket_path().empty();
  if (local) {
    target.address = net::Address::unix_socket(address.socket_path());
  } else {
    target.address = net::Address::tcp(address.ip(), address.port());
    target.name = "worker";
    target.id = id.hex();
  }
  rpc::connect(*loop, target, self.identity(), settings.connect_timeout_ms * 1000,
               [this, id](Result<std::shared_ptr<rpc::Connection>> connection) {
                 std::vector<WithLink> waiters;
                 waiters.swap(peers[id].waiters);
                 if (!connection) {
                   if (!peers[id].link) peers.erase(id);
                   for (auto& waiter : waiters) waiter(connection.error());
                   return;
                 }
                 auto link = adopt_link(*connection, false);
                 link->peer = id;
                 peers[id].link = link;
                 for (auto& waiter : waiters) waiter(link);
               });
}

void Worker::Impl::on_head_event(const proto::HeadEvent& event) {
  for (const auto& node : event.nodes()) nodes.update(node);
  for (const auto& dead : event.dead_workers()) refs->borrower_gone(WorkerId::from_binary(dead));
  for (const auto& info : event.actors()) {
    ActorId id = ActorId::from_binary(info.spec().actor_id());
    bool made = info.state() == proto::ACTOR_ALIVE && info.spec().max_restarts() == 0;
    if (made || info.state() == proto::ACTOR_DEAD) creations->forget(id);
    // A dead actor does not count against the head's limit for a connection.
    if (info.state() == proto::ACTOR_DEAD) head.forget_actor(id);
    actors->actor_update(id, &info);
  }
  for (const auto& info : event.groups()) groups->update(info);
  notices.add(event);
}

}  // namespace rt::worker
