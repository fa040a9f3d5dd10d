// The way of a driver or worker to its head: when it connects, when it tries again, when those that
// wait for a connection are told that there is none, and what the head is asked to tell over each
// new connection.
//
// It connects when somebody first asks, and again after a loss if the head is to tell something by
// itself. Whoever asks waits until the head could not be reached for head_reconnect_timeout_ms,
// counted from its loss or, when nobody asked for it then, from the first failure since, or is told
// at once of an error that another attempt would only repeat.
// That is no end: whoever asks later causes another attempt.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/settings.h"
#include "common/proto/head.pb.h"

namespace rt::worker {

class HeadContact {
 public:
  // Both outlive this object. `head` is the head's address, for people; it may be filled in later.
  HeadContact(const Settings& settings, const std::string& head);
  ~HeadContact();

  // The next deed, if there is one.
  struct Turn {
    bool connect = false;               // connect to the head
    std::optional<Error> give_up = {};  // tell all that wait for a connection
  };
  // Somebody asks for a connection, and waits, because none is open.
  Turn wanted();
  // The attempt to connect has failed.
  Turn failed(Error why, Now now);
  // The attempt was a success. Returns what to subscribe to before those that wait use the
  // connection, if there is anything.
  std::optional<proto::SubscribeRequest> connected();
  // The connection has ended. `needed`: it has to be made again, although nobody waits for it.
  void lost(bool needed, Now now);
  Turn tick(Now now);
  // The steady time at which tick() has something to do, or -1.
  int64_t next_tick_us() const { return due_us_; }
  // This process ends: who waits is told at the next failure.
  void stop() { stopped_ = true; }
  // Whether the head was lost, or could not be reached when it was last tried.
  bool is_lost() const { return lost_us_ >= 0; }

  // ---- what the head tells by itself, and is asked for again over each new connection
  void keep(const proto::SubscribeRequest& request) { kept_.MergeFrom(request); }
  // Returns false if it was kept before.
  bool keep_actor(const ActorId& id);
  void forget_actor(const ActorId& id);
  // The head has answered connected()'s subscription with an error. Returns a line for the user of
  // the program, unless the next connection mends it.
  std::optional<std::string> subscription_failed(const Error& why) const;

 private:
  const Settings& settings_;
  const std::string& head_;
  bool connecting_ = false, stopped_ = false;
  int64_t lost_us_ = -1;  // -1: the last attempt was a success, or there was none
  // No attempt has been made since the loss, so that the head may have been back all the time.
  bool nobody_asked_ = false;
  int64_t due_us_ = -1;  // the next attempt; -1: none is planned
  proto::SubscribeRequest kept_;
  std::set<ActorId> actors_;
};

}  // namespace rt::worker
