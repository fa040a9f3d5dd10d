#include "worker/core/pipelining.h"

#include <algorithm>

namespace rt::worker {

namespace {

bool may_push(const Settings& settings, const Lease& lease, const Task& task) {
  if (lease.state != Lease::State::kReady || lease.revoked) return false;
  if (lease.in_flight.empty()) return true;
  if (lease.overdue) return false;
  if (task.function->alone || lease.in_flight.back()->function->alone) return false;
  // A suspect task, and one without retries, runs alone: it must neither be blamed for a
  // neighbour's crash nor be lost with the neighbour.
  if (task.suspect || task.retries_left == 0 || lease.in_flight.back()->suspect ||
      lease.in_flight.back()->retries_left == 0)
    return false;
  int64_t average = task.function->average_us;
  if (average < 0) return false;
  return lease.in_flight_us + average <= settings.pipeline_target_us &&
         static_cast<int64_t>(lease.in_flight.size()) < settings.pipeline_max_tasks;
}

}  // namespace

Lease* least_loaded(const Settings& settings, const SchedulingClass& c, const Task& task) {
  Lease* best = nullptr;
  for (Lease* lease : c.leases) {
    if (!may_push(settings, *lease, task)) continue;
    if (lease->in_flight.empty()) return lease;
    if (!best || lease->in_flight.size() < best->in_flight.size()) best = lease;
  }
  return best;
}

int needed_leases(const Settings& settings, const SchedulingClass& c) {
  int64_t unstarted = static_cast<int64_t>(c.queue.size()) + c.unstarted_in_flight;
  if (unstarted == 0) return 0;
  int64_t average = c.queue.empty() ? -1 : c.queue.front()->function->average_us;
  for (const Lease* lease : c.leases) {
    if (average >= 0) break;
    if (!lease->in_flight.empty()) average = lease->in_flight.front()->function->average_us;
  }
  // Another worker pays when it saves more than about a millisecond. Where the measurement proves
  // wrong, one more lease is asked for than there are overdue ones.
  int64_t overdue = std::count_if(c.leases.begin(), c.leases.end(),
                                  [](const Lease* lease) { return lease->overdue; });
  if (average >= 0)
    unstarted = std::min(
        unstarted, std::max((unstarted * std::max<int64_t>(average, 1) + 999) / 1000, overdue + 1));
  return static_cast<int>(std::min<int64_t>(unstarted, settings.max_workers));
}

int missing_leases(const Settings& settings, const SchedulingClass& c) {
  int needed = needed_leases(settings, c);
  for (const Lease* lease : c.leases) {
    // Leases that are being connected will take a share of the work.
    if (lease->state == Lease::State::kConnecting && needed > 0) --needed;
  }
  return c.leases.empty() && !c.queue.empty() ? std::max(needed, 1) : needed;
}

bool became_overdue(const Settings& settings, Lease& lease, SteadyNow now) {
  if (lease.state != Lease::State::kReady || lease.in_flight.empty() || lease.overdue) return false;
  if (uint32_t first = lease.in_flight.front()->seq; first != lease.watched_seq) {
    lease.watched_seq = first;
    lease.watched_since_us = now.steady_us;
    return false;
  }
  // A worker that waits for its turn on a crowded host is not stuck, and taking back costs
  // messages.
  constexpr int kPatience = 4;
  if (now.steady_us - lease.watched_since_us < kPatience * settings.pipeline_target_us)
    return false;
  return lease.overdue = true;
}

bool wants_leases(const SchedulingClass& c) {
  return c.group ? c.group->wants() : c.local_want > 0;
}

}  // namespace rt::worker
