#include "worker/service/peers.h"

#include <utility>

namespace rt::worker {

std::shared_ptr<Link> Peers::adopt(const std::shared_ptr<rpc::Connection>& connection,
                                   bool inbound) {
  auto link = std::make_shared<Link>();
  link->connection = connection;
  link->peer = WorkerId::from_binary(connection->peer().id);
  if (inbound && !connection->peer().job_config.empty()) {
    link->job_config = std::make_unique<proto::JobConfig>();
    if (!link->job_config->ParseFromString(connection->peer().job_config))
      link->job_config->Clear();
  }
  connection->set_closed_handler([this, weak = std::weak_ptr<Link>(link)](const Error&) {
    assert_locked();
    if (auto ended = weak.lock()) closed(ended);
  });
  hooks_.opened(link);
  links_.insert(link);
  Peer& peer = peers_[link->peer];
  if (!peer.link || !peer.link->open) peer.link = link;
  return link;
}

void Peers::closed(const std::shared_ptr<Link>& link) {
  if (!link->open) return;
  link->open = false;
  links_.erase(link);
  hooks_.closed(link, replace(link));
}

bool Peers::replace(const std::shared_ptr<Link>& link) {
  auto it = peers_.find(link->peer);
  if (it == peers_.end() || it->second.link != link) return false;
  Peer& peer = it->second;
  peer.link.reset();
  for (const auto& other : links_) {
    if (other->peer == link->peer && other->open) peer.link = other;
  }
  const bool gone = !peer.link;
  if (gone && peer.waiters.empty()) peers_.erase(it);
  return gone;
}

void Peers::with(const proto::WorkerAddress& address, WithLink done) {
  WorkerId id = WorkerId::from_binary(address.worker_id());
  Peer& peer = peers_[id];
  if (peer.link && peer.link->open) {
    done(peer.link);
    return;
  }
  peer.waiters.push_back(std::move(done));
  if (peer.waiters.size() > 1) return;
  rpc::Target target;
  bool local = address.node_id() == context_.node_id.view() && !address.socket_path().empty();
  if (local) {
    target.address = net::Address::unix_socket(address.socket_path());
  } else {
    target.address = net::Address::tcp(address.ip(), address.port());
    target.name = "worker";
    target.id = id.hex();
  }
  rpc::connect(loop_, target, self_.identity(), options_.settings.connect_timeout_ms * 1000,
               [this, id](Result<std::shared_ptr<rpc::Connection>> connection) {
                 assert_locked();
                 std::vector<WithLink> waiters = std::exchange(peers_[id].waiters, {});
                 if (!connection) {
                   if (!peers_[id].link) peers_.erase(id);
                   for (WithLink& waiter : waiters) waiter(connection.error());
                   return;
                 }
                 auto link = adopt(*connection, false);
                 link->peer = id;
                 peers_[id].link = link;
                 for (WithLink& waiter : waiters) waiter(link);
               });
}

void Peers::close() {
  for (const auto& link : links_) link->connection->set_closed_handler(nullptr);
  links_.clear();
  peers_.clear();
}

}  // namespace rt::worker
