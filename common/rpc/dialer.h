// Connections that several callers want at once: the first one dials, and all of them get the same
// outcome. Who keeps the connection afterwards, and until when, is the business of those who use
// this.
//
// Threads: those of the loop (see net/loop.h). Nobody is called from inside dial(). After close()
// or the destructor no outcome is told any more: those who wait are forgotten, and an attempt that
// is under way ends unseen. A caller that has given up meanwhile cannot take its callback back; the
// callback has to find that out itself.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/rpc/connection.h"

namespace rt::rpc {

// Callbacks that wait for a `T`, or for the error that there will be none.
template <class T>
class Waiters {
 public:
  using Done = std::function<void(Result<T>)>;

  void add(Done done) { waiters_.push_back(std::move(done)); }
  size_t size() const { return waiters_.size(); }
  // Calls everybody who waits now, in their order. Those who come meanwhile wait for the next
  // outcome.
  void answer(const Result<T>& outcome) {
    for (Done& waiter : std::exchange(waiters_, {})) waiter(outcome);
  }

 private:
  std::vector<Done> waiters_;
};

using WithConnection = Waiters<std::shared_ptr<Connection>>::Done;

// `Key` says which peer is meant. Callers get the `T` that `opened` makes of the connection.
template <class Key, class T = std::shared_ptr<Connection>>
class Dialer {
 public:
  // Called once with each new connection, before those who wait for it.
  using Opened = std::function<T(const Key&, const std::shared_ptr<Connection>&)>;

  // The loop must outlive this object.
  Dialer(net::Loop& loop, int64_t timeout_us, Opened opened)
      : loop_(loop), timeout_us_(timeout_us), opened_(std::move(opened)) {}
  Dialer(const Dialer&) = delete;

  // Calls `done` once the peer is connected or the attempt has failed. Only the `target` and `me`
  // of the first caller count.
  void dial(const Key& key, const Target& target, const Identity& me,
            typename Waiters<T>::Done done) {
    std::shared_ptr<Waiters<T>>& attempt = attempts_[key];
    const bool first = !attempt;
    if (first) attempt = std::make_shared<Waiters<T>>();
    attempt->add(std::move(done));
    if (!first) return;
    connect(loop_, target, me, timeout_us_,
            [this, key, weak = std::weak_ptr<Waiters<T>>(attempt)](
                Result<std::shared_ptr<Connection>> connection) {
              // While there is the attempt, there is this object.
              const std::shared_ptr<Waiters<T>> waiters = weak.lock();
              if (!waiters) return;
              attempts_.erase(key);
              waiters->answer(connection ? Result<T>(opened_(key, *connection))
                                         : Result<T>(connection.error()));
            });
  }
  // How many wait for the peer.
  size_t waiting(const Key& key) const {
    auto attempt = attempts_.find(key);
    return attempt == attempts_.end() ? 0 : attempt->second->size();
  }
  void close() { attempts_.clear(); }

 private:
  net::Loop& loop_;
  const int64_t timeout_us_;
  const Opened opened_;
  // The only owner of each; the callback of the attempt knows by its weak pointer whether it counts
  // still.
  std::unordered_map<Key, std::shared_ptr<Waiters<T>>> attempts_;
};

}  // namespace rt::rpc
