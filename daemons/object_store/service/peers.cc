#include "daemons/object_store/service/peers.h"

#include <fmt/core.h>

#include <utility>

namespace rt::store {

namespace {
constexpr size_t kMaxWaiting = 100'000;
}

Peers::Peers(net::Loop& loop, rpc::Identity identity, int64_t connect_timeout_us)
    : identity_(std::move(identity)),
      dialer_(
          loop, connect_timeout_us,
          [this](const std::string& key, const std::shared_ptr<rpc::Connection>& connection) {
            connections_[key] = connection;
            connection->set_closed_handler([this, key](const Error&) { connections_.erase(key); });
            return connection;
          }) {}

Peers::~Peers() {
  for (auto& [key, connection] : connections_) {
    connection->set_closed_handler(nullptr);
    connection->close(
        make_error(Code::kUnavailable, "this object store is being stopped, with its node"));
  }
}

void Peers::get(const Source& target, rpc::WithConnection ready) {
  net::Address address = net::Address::tcp(target.ip, target.port);
  std::string key = address.to_string();
  if (auto known = connections_.find(key); known != connections_.end() && known->second->is_open())
    return ready(known->second);
  if (dialer_.waiting(key) >= kMaxWaiting)
    return ready(make_error(
        Code::kResourceExhausted,
        fmt::format("{} requests already wait for a connection to {}", kMaxWaiting, key)));
  dialer_.dial(key, {address, "store", {}}, identity_, std::move(ready));
}

}  // namespace rt::store
