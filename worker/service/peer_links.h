// The links to other workers and drivers. They are opened when somebody first asks for one, or by
// the peer, and kept; everything that flows to the same peer shares one. When both sides have
// opened one at the same time, each side writes to the peer over the one that it had first.
//
// All functions passed in are called with the worker's mutex held.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "common/base/ids.h"
#include "common/net/loop.h"
#include "common/proto/common.pb.h"
#include "common/rpc/connection.h"
#include "common/rpc/dialer.h"
#include "worker/service/link.h"
#include "worker/service/lock.h"
#include "worker/service/self.h"

namespace rt::worker {

class PeerLinks {
 public:
  using WithLink = rpc::Waiters<std::shared_ptr<Link>>::Done;
  struct Hooks {
    // A link was made. It needs its services and the handler of its frames.
    std::function<void(const std::shared_ptr<Link>&)> opened;
    // A link has ended; `gone`: it was the last one with its peer.
    std::function<void(const std::shared_ptr<Link>&, bool gone)> closed;
  };

  // All references must outlive this object.
  PeerLinks(net::Loop& loop, const Options& options, const Context& context, const Self& self,
            Hooks hooks);

  // Calls `done` with the link to a worker, at once or when it has been made or has failed.
  void with(const proto::WorkerAddress& address, WithLink done) REQUIRES(worker_mutex);
  // Makes a link of a connection, which the peer has opened if it is `inbound`.
  std::shared_ptr<Link> adopt(const std::shared_ptr<rpc::Connection>& connection, bool inbound)
      REQUIRES(worker_mutex);
  // The link over which this process writes to the peer; null if there is none.
  Link* find(const WorkerId& id) const REQUIRES(worker_mutex) {
    auto peer = peers_.find(id);
    return peer == peers_.end() ? nullptr : peer->second.get();
  }
  // Drops all links without a word to anybody.
  void close() REQUIRES(worker_mutex);

 private:
  void closed(const std::shared_ptr<Link>& link) REQUIRES(worker_mutex);
  // Lets another link with the same peer take over; returns whether there is none.
  bool replace(const std::shared_ptr<Link>& link) REQUIRES(worker_mutex);

  const Context& context_;
  const Self& self_;
  const Hooks hooks_;
  rpc::Dialer<WorkerId, std::shared_ptr<Link>> dialer_ GUARDED_BY(worker_mutex);
  // The link over which this process writes to each peer.
  std::unordered_map<WorkerId, std::shared_ptr<Link>> peers_ GUARDED_BY(worker_mutex);
  std::unordered_set<std::shared_ptr<Link>> links_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
