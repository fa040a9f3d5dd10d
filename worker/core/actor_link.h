// An actor as a process that calls it knows it. Its data belongs to ActorCalls.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "worker/core/task.h"
#include "worker/core/task_channel.h"

namespace rt::worker {

struct ActorLink {
  enum class State { kUnknown, kConnecting, kAlive, kInterrupted, kRestarting, kDead };
  ActorId id;
  ObjectId handle;  // handle_object_of(id)
  State state = State::kUnknown;
  bool out_of_order = false;
  proto::ActorInfo info;  // As last heard from the head.
  // The calls to one concurrency group.
  struct Lane {
    std::string group;        // "" for the default group.
    std::deque<Task*> queue;  // Not sent yet; in order.
    int64_t in_flight = 0;
    int64_t window = 0;     // The most calls in flight.
    bool reported = false;  // ActorSink::window_full() was called for it.
    bool full() const { return in_flight >= window; }
    // A call that could be sent waits because the window is full.
    bool holds_back() const { return full() && !queue.empty() && queue.front()->unready_args == 0; }
  };
  // The lane of the default group is the first. Those of other groups follow in the order of their
  // first calls.
  std::vector<Lane> lanes;
  std::deque<Task*> in_flight;  // Calls of all lanes, in the order of their numbers.
  uint32_t next_seq = 1;
  TaskChannel* channel = nullptr;  // To its process; null unless the state is kAlive.
  int connect_failures = 0;
  int64_t ask_at_us = -1;  // When the head is asked for its state; -1: never, or asked already.
  // When the head said for the first time that it does not know the actor; -1: it did not.
  int64_t unknown_since_us = -1;
  // The head's news that the life this link is connected to has ended, while replies of that life
  // may still be unread in the connection. It takes effect once the connection has been read to its
  // end, or when the head has confirmed it. Null at all other times.
  std::unique_ptr<proto::ActorInfo> end_of_life;

  // Whether the head's next answer decides what becomes of calls in flight.
  bool is_uncertain() const { return state == State::kInterrupted || end_of_life; }
  // Whether nothing but the head's word leads to another state.
  bool waits_for_head() const {
    return is_uncertain() || state == State::kUnknown || state == State::kRestarting;
  }
};

}  // namespace rt::worker
