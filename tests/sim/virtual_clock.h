// Virtual time: a queue of events. Nothing happens between two events, so simulating an hour costs
// only as much as the events in it.
//
// Every event that runs is mixed into a hash. Two runs of the same seed with different hashes have
// diverged, which means that something is not deterministic.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"

namespace rt::sim {

class VirtualClock {
 public:
  using Id = uint64_t;  // 0: none

  // Schedules `run`. `what` (a string literal) and `who` (a process number) are for the trace.
  Id at(int64_t steady_us, const char* what, uint64_t who, std::function<void()> run);
  Id after(int64_t delay_us, const char* what, uint64_t who, std::function<void()> run) {
    return at(now_us_ + delay_us, what, who, std::move(run));
  }
  // Cancels an event, unless it has run, and clears the caller's id.
  void cancel(Id& id);

  // Runs the next event. Returns false if there is none.
  bool step();
  // Adds a line to the trace, and to the hash, that is not an event of its own.
  void note(const char* what, uint64_t who, uint64_t detail = 0);

  int64_t now_us() const { return now_us_; }
  Now now() const { return {now_us_, kWallEpochUs + now_us_}; }
  uint64_t events() const { return events_; }
  uint64_t hash() const { return hash_; }
  // Describes the last events, newest last.
  std::string recent() const;
  void print_events(bool on) { print_ = on; }

 private:
  static constexpr int64_t kWallEpochUs = 1'700'000'000'000'000;
  static constexpr size_t kRemembered = 60;
  struct Event {
    const char* what;
    uint64_t who;
    std::function<void()> run;
  };
  struct Past {
    int64_t at_us;
    const char* what;
    uint64_t who, detail;
  };

  int64_t now_us_ = 1'000'000;
  Id last_ = 0;
  std::priority_queue<std::pair<int64_t, Id>, std::vector<std::pair<int64_t, Id>>, std::greater<>>
      due_;
  std::unordered_map<Id, Event> planned_;
  std::deque<Past> past_;
  uint64_t events_ = 0, hash_ = 0xcbf29ce484222325ull;
  bool print_ = false;
};

}  // namespace rt::sim
