// Decides when worker processes are started. It knows how many are needed for what, what holds a
// start up, and whom it has told. NodeCore gathers the needs anew in each pass and then asks for
// starts.
//
// Nothing bounds the processes of actors but what the machine can carry; a process that cannot be
// made is a failed start. Processes for tasks have three bounds more:
//
// - max_workers bounds those whose tasks compute. A blocked task does not count, because it may
//   wait for a task that has no process yet.
// - When tasks block, others get their CPUs and processes of their own. The more are blocked, the
//   longer is the pause between two starts, so that a burst of blocked tasks does not start a
//   process for each before the first ones could serve several. A pause is never longer than
//   blocked_start_pause_max_ms, which is about the duration of a start, so that recursion goes on.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "common/config/settings.h"
#include "daemons/node_manager/core/worker_pool.h"

namespace rt::node {

class WorkerStarts {
 public:
  enum class Hold { kNone, kBackoff, kConcurrency, kMaxWorkers, kPause };
  struct Needs {
    int tasks = 0, actors = 0;
    int all() const { return tasks + actors; }
  };

  // `settings` and `pool` outlive this object.
  WorkerStarts(const Settings& settings, const WorkerPool& pool);
  ~WorkerStarts();

  // ---- needs of the current pass
  void begin_pass();
  void need_for_task(const WorkerKind& kind);
  void need_for_actor(const WorkerKind& kind);
  const std::map<WorkerKind, Needs>& needs() const { return needs_; }

  // ---- starts
  // The number of workers that a node with so many CPUs keeps without need: never more than could
  // be started.
  int warm(double cpus) const;
  // Returns kNone if a process of `kind` may be started now, otherwise what holds it up.
  Hold ask(const WorkerKind& kind, Now now);
  void started(Now now) { last_start_us_ = now.steady_us; }
  // A process of `kind` has registered.
  void succeeded(const WorkerKind& kind);
  // A start has failed, for people because of `why`. Starts that fail during the pause after
  // another failure are counted with it, because they began before it. Returns true if
  // worker_start_retries are used up: what waits for this kind should fail.
  bool failed(const WorkerKind& kind, const std::string& why, Now now);
  bool backs_off(const WorkerKind& kind, Now now) const;
  // Time at which a start that was held up by a pause may be asked for again, or -1.
  int64_t paused_until_us() const { return paused_until_us_; }

  // ---- what is said about it
  // Says why `kind` has no process yet, as of the last pass: a phrase that continues "waits for ".
  std::string describe(const WorkerKind& kind) const;
  // Returns a line for the driver of `job` when something that waits since `since_us` for a process
  // of `kind` is held up by a bound and the driver has not been told of that bound; otherwise an
  // empty string.
  std::string warning(const WorkerKind& kind, JobId job, const std::string& what, int64_t since_us,
                      Now now);
  void forget(JobId job);

 private:
  struct Backoff {
    int failures = 0;           // in a row
    int64_t not_before_us = 0;  // earliest time of the next start
    std::string why;            // the last failure's reason
  };
  Hold find_hold(const WorkerKind& kind, Now now) const;
  Hold held(const WorkerKind& kind) const;
  int64_t pause_us() const;

  const Settings& settings_;
  const WorkerPool& pool_;
  std::map<WorkerKind, Needs> needs_;
  int actors_waiting_ = 0;           // sum of Needs::actors
  std::map<WorkerKind, Hold> held_;  // starts that were held up in the last pass
  std::map<WorkerKind, Backoff> backoffs_;
  int64_t last_start_us_ = 0, paused_until_us_ = -1;
  std::set<std::pair<JobId, Hold>> told_;
};

}  // namespace rt::node
