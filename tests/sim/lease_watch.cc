#include "tests/sim/lease_watch.h"

#include <fmt/core.h>

namespace rt::sim {

void LeaseWatch::look() {
  // The submitter looks for idle leases once in a millisecond at most.
  const int64_t most_us = world_.settings.lease_idle_timeout_ms * 1000 + 2000;
  const int64_t now_us = world_.clock.now_us();
  for (auto& [key, since_us] : idle_since_us_) {
    const worker::Lease* lease = submitter_.find_lease(key);
    if (!lease) violation(fmt::format("owner #{} forgets lease {}", owner_, key));
    if (!is_idle(*lease)) {
      since_us = kNotIdle;
      continue;
    }
    auto wrong = [&](const char* why) {
      violation(fmt::format("owner #{} keeps lease {} idle {}", owner_, key, why));
    };
    if (lease->revoked) wrong("although its node wants it back");
    if (!lease->owner_class->queue.empty()) wrong("while tasks wait");
    if (since_us == kNotIdle) since_us = now_us;
    if (now_us - since_us > most_us) wrong("for too long");
  }
}

void LeaseWatch::check_none_idle() const {
  for (const auto& [key, since_us] : idle_since_us_) {
    if (is_idle(*submitter_.find_lease(key)))
      violation(fmt::format("owner #{} was to return its idle leases, and keeps {}", owner_, key));
  }
}

}  // namespace rt::sim
