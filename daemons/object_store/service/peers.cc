#include "daemons/object_store/service/peers.h"

#include <fmt/core.h>

namespace rt::store {

namespace {
constexpr size_t kMaxWaiting = 100'000;
}

Peers::Peers(net::Loop& loop, rpc::Identity identity, int64_t connect_timeout_us)
    : loop_(loop), identity_(std::move(identity)), connect_timeout_us_(connect_timeout_us) {}

Peers::~Peers() {
  alive_.reset();
  for (auto& [key, peer] : peers_) {
    if (peer.connection)
      peer.connection->close(make_error(Code::kUnavailable, "the object store ends"));
  }
}

void Peers::get(const Source& target, Ready ready) {
  net::Address address = net::Address::tcp(target.ip, target.port);
  std::string key = address.to_string();
  Peer& peer = peers_[key];
  if (peer.connection && peer.connection->is_open()) return ready(peer.connection);
  if (peer.waiting.size() >= kMaxWaiting)
    return ready(make_error(
        Code::kResourceExhausted,
        fmt::format("{} requests already wait for a connection to {}", kMaxWaiting, key)));
  bool connecting = !peer.waiting.empty();
  peer.connection.reset();
  peer.waiting.push_back(std::move(ready));
  if (connecting) return;
  rpc::connect(loop_, {address, "store", {}}, identity_, connect_timeout_us_,
               [this, key, alive = std::weak_ptr<bool>(alive_)](
                   Result<std::shared_ptr<rpc::Connection>> connection) {
                 if (!alive.expired()) connected(key, std::move(connection));
               });
}

void Peers::connected(const std::string& key, Result<std::shared_ptr<rpc::Connection>> connection) {
  Peer& peer = peers_[key];
  std::vector<Ready> waiting = std::move(peer.waiting);
  peer.waiting.clear();
  if (connection) {
    peer.connection = *connection;
    peer.connection->set_closed_handler(
        [this, key, alive = std::weak_ptr<bool>(alive_)](const Error&) {
          if (alive.expired()) return;
          auto it = peers_.find(key);
          if (it == peers_.end() || !it->second.waiting.empty()) return;
          // The connection lives on until its handler, which belongs to it, has returned.
          loop_.post([keep = std::move(it->second.connection)] {});
          peers_.erase(it);
        });
  } else {
    peers_.erase(key);
  }
  for (Ready& ready : waiting) ready(connection);
}

}  // namespace rt::store
