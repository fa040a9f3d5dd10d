// The connection of this process to the head. It is opened when somebody first asks for it, and
// kept. While the head cannot be reached, whoever asks waits for head_reconnect_timeout_ms. What
// the head tells of by itself (actors, logs) is subscribed to again on each new connection.
//
// All functions passed in are called with the worker's mutex held.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/base/ids.h"
#include "common/net/loop.h"
#include "common/proto/head.pb.h"
#include "common/rpc/connection.h"
#include "worker/service/lock.h"
#include "worker/service/notices.h"
#include "worker/service/self.h"
#include "worker/service/with_connection.h"

namespace rt::worker {

class HeadSession {
 public:
  struct Hooks {
    // A connection was made: it needs its services, and others repeat what only the last one knew.
    std::function<void(const std::shared_ptr<rpc::Connection>&)> opened;
    // Whether a lost connection must be made again, although nobody asks anything.
    std::function<bool()> needed;
    // The head has answered the renewal of the subscriptions.
    std::function<void()> renewed;
  };

  // All references must outlive this object.
  HeadSession(net::Loop& loop, const Options& options, const Context& context, const Self& self,
              const std::atomic<bool>& stopping, Notices& notices, Hooks hooks);

  // Calls `done` with the connection, at once or when it has been made or has failed.
  void with(WithConnection done) REQUIRES(worker_mutex);
  bool is_open() const REQUIRES(worker_mutex) { return connection_ != nullptr; }
  // Whether the head could not be reached when it was last tried.
  bool is_lost() const REQUIRES(worker_mutex) { return lost_us_ != 0; }

  void subscribe(const proto::SubscribeRequest& request) REQUIRES(worker_mutex);
  // The actor is among the subscriptions that are renewed until forget_actor(). Returns false if it
  // was before. The first subscription is the caller's business.
  bool keep_actor(const ActorId& id) REQUIRES(worker_mutex) {
    return actors_.insert(id.binary()).second;
  }
  void forget_actor(const ActorId& id) REQUIRES(worker_mutex) { actors_.erase(id.binary()); }

  void close() REQUIRES(worker_mutex);

 private:
  void connected(Result<std::shared_ptr<rpc::Connection>> connection) REQUIRES(worker_mutex);
  void answer(const Result<std::shared_ptr<rpc::Connection>>& connection) REQUIRES(worker_mutex);
  void lost() REQUIRES(worker_mutex);
  void resubscribe() REQUIRES(worker_mutex);

  net::Loop& loop_;
  const Options& options_;
  const Context& context_;
  const Self& self_;
  const std::atomic<bool>& stopping_;
  Notices& notices_;
  const Hooks hooks_;
  std::shared_ptr<rpc::Connection> connection_ GUARDED_BY(worker_mutex);
  std::vector<WithConnection> waiters_ GUARDED_BY(worker_mutex);
  bool connecting_ GUARDED_BY(worker_mutex) = false;
  // 0: the last try was a success, or there was none.
  int64_t lost_us_ GUARDED_BY(worker_mutex) = 0;
  // To be renewed on a new connection.
  proto::SubscribeRequest subscriptions_ GUARDED_BY(worker_mutex);
  std::unordered_set<std::string> actors_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
