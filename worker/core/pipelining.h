// How much work a lease gets at a time, and how many leases the work of a class needs. Pure.
#pragma once

#include "common/base/clock.h"
#include "common/config/settings.h"
#include "worker/core/scheduling_class.h"

namespace rt::worker {

// The lease that the task should be pushed to; null when every one of them has enough.
Lease* least_loaded(const Settings& settings, const SchedulingClass& c, const Task& task);
// How many leases the tasks that have not started would do with.
int needed_leases(const Settings& settings, const SchedulingClass& c);
// The same without those that are being connected: how many more are to be asked for.
int missing_leases(const Settings& settings, const SchedulingClass& c);
// Whether some of them have been asked for and are not granted yet.
bool wants_leases(const SchedulingClass& c);

// Whether the first task of the lease has been running for much longer than the measured durations
// say, which describe the past. The lease is overdue from then on, and the tasks behind are to be
// taken back, so that any free worker can run them. To be called again and again.
bool became_overdue(const Settings& settings, Lease& lease, SteadyNow now);

}  // namespace rt::worker
