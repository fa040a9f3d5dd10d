#include "worker/service/peer_links.h"

#include <utility>

namespace rt::worker {

PeerLinks::PeerLinks(net::Loop& loop, const Options& options, const Context& context,
                     const Self& self, Hooks hooks)
    : context_(context),
      self_(self),
      hooks_(std::move(hooks)),
      dialer_(loop, options.settings.connect_timeout_ms * 1000,
              [this](const WorkerId& id, const std::shared_ptr<rpc::Connection>& connection) {
                assert_locked();
                auto link = adopt(connection, false);
                link->peer = id;
                peers_[id] = link;
                return link;
              }) {}

std::shared_ptr<Link> PeerLinks::adopt(const std::shared_ptr<rpc::Connection>& connection,
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
  std::shared_ptr<Link>& used = peers_[link->peer];
  if (!used || !used->open) used = link;
  return link;
}

void PeerLinks::closed(const std::shared_ptr<Link>& link) {
  if (!link->open) return;
  link->open = false;
  links_.erase(link);
  hooks_.closed(link, replace(link));
}

bool PeerLinks::replace(const std::shared_ptr<Link>& link) {
  auto it = peers_.find(link->peer);
  if (it == peers_.end() || it->second != link) return false;
  for (const auto& other : links_) {
    if (other->peer != link->peer || !other->open) continue;
    it->second = other;
    return false;
  }
  peers_.erase(it);
  return true;
}

void PeerLinks::with(const proto::WorkerAddress& address, WithLink done) {
  WorkerId id = WorkerId::from_binary(address.worker_id());
  if (auto used = peers_.find(id); used != peers_.end() && used->second->open)
    return done(used->second);
  rpc::Target target;
  bool local = address.node_id() == context_.node_id.view() && !address.socket_path().empty();
  if (local) {
    target.address = net::Address::unix_socket(address.socket_path());
  } else {
    target.address = net::Address::tcp(address.ip(), address.port());
    target.name = "worker";
    target.id = id.hex();
  }
  dialer_.dial(id, target, self_.identity(), std::move(done));
}

void PeerLinks::close() {
  for (const auto& link : links_) link->connection->set_closed_handler(nullptr);
  links_.clear();
  peers_.clear();
  dialer_.close();
}

}  // namespace rt::worker
