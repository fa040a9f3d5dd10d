// Watches what a driver does with its leases: none of them is idle for longer than is agreed,
// or while tasks wait for it, or when its node wants it back.
#pragma once

#include <cstdint>
#include <map>

#include "tests/sim/world.h"
#include "worker/core/submitter.h"

namespace rt::sim {

class LeaseWatch {
 public:
  // `world` and `submitter` outlive this object.
  LeaseWatch(const World& world, const worker::Submitter& submitter, uint64_t owner)
      : world_(world), submitter_(submitter), owner_(owner) {}

  void begins(uint64_t key) { idle_since_us_[key] = kNotIdle; }
  void ends(uint64_t key) { idle_since_us_.erase(key); }
  // To be called after each event of the submitter.
  void look();
  // All idle leases have just been returned.
  void check_none_idle() const;

 private:
  static constexpr int64_t kNotIdle = -1;
  static bool is_idle(const worker::Lease& lease) {
    return lease.state == worker::Lease::State::kReady && lease.in_flight.empty();
  }

  const World& world_;
  const worker::Submitter& submitter_;
  const uint64_t owner_;
  std::map<uint64_t, int64_t> idle_since_us_;  // By the key of the lease.
};

}  // namespace rt::sim
