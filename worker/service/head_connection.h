// The connection of this process to the head. When it is made, and made again, is decided by
// core/head_contact.h.
//
// All functions passed in are called with the worker's mutex held.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "common/base/ids.h"
#include "common/net/alarm.h"
#include "common/net/loop.h"
#include "common/proto/head.pb.h"
#include "common/rpc/connection.h"
#include "common/rpc/dialer.h"
#include "worker/core/head_contact.h"
#include "worker/service/lock.h"
#include "worker/service/notices.h"
#include "worker/service/self.h"

namespace rt::worker {

class HeadConnection {
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
  HeadConnection(net::Loop& loop, const Options& options, const Context& context, const Self& self,
                 const std::atomic<bool>& stopping, Notices& notices, Hooks hooks);

  // Calls `done` with the connection, at once or when it has been made or has failed.
  void with(rpc::WithConnection done) REQUIRES(worker_mutex);
  bool is_open() const REQUIRES(worker_mutex) { return connection_ != nullptr; }
  // Whether the head was lost, or could not be reached when it was last tried.
  bool is_lost() const REQUIRES(worker_mutex) { return contact_.is_lost(); }

  void subscribe(const proto::SubscribeRequest& request) REQUIRES(worker_mutex);
  // The actor is among the subscriptions that are renewed until forget_actor(). Returns false if it
  // was before. The first subscription is the caller's business.
  bool keep_actor(const ActorId& id) REQUIRES(worker_mutex) { return contact_.keep_actor(id); }
  void forget_actor(const ActorId& id) REQUIRES(worker_mutex) { contact_.forget_actor(id); }

  void close() REQUIRES(worker_mutex);

 private:
  Now now() const;
  void act(const HeadContact::Turn& turn) REQUIRES(worker_mutex);
  void attempt() REQUIRES(worker_mutex);
  void failed(const Error& why) REQUIRES(worker_mutex);
  void connected(std::shared_ptr<rpc::Connection> connection) REQUIRES(worker_mutex);
  void lost() REQUIRES(worker_mutex);
  void subscribe_again(const proto::SubscribeRequest& request) REQUIRES(worker_mutex);

  net::Loop& loop_;
  const Options& options_;
  const Context& context_;
  const Self& self_;
  const std::atomic<bool>& stopping_;
  Notices& notices_;
  const Hooks hooks_;
  std::shared_ptr<rpc::Connection> connection_ GUARDED_BY(worker_mutex);
  // An attempt may fail and another one follow, before contact_ gives those up who wait.
  rpc::Waiters<std::shared_ptr<rpc::Connection>> waiters_ GUARDED_BY(worker_mutex);
  HeadContact contact_ GUARDED_BY(worker_mutex);
  net::Alarm alarm_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
