#include "daemons/node_manager/core/worker_starts.h"

#include <fmt/core.h>

#include <algorithm>

namespace rt::node {
namespace {
// Bounded because a program may use any number of runtime environments.
constexpr size_t kMaxBackoffKinds = 1000;
constexpr int64_t kFirstBackoffUs = 200'000, kMaxBackoffUs = 30'000'000;
// So many tasks may be blocked before the starts of processes that take their places have pauses.
constexpr int kBlockedWithoutPause = 8;
constexpr int64_t kPausePerBlockedUs = 500;
// Many processes that start at once are normal for a while; a bound that stays reached is not.
constexpr int kConcurrencyPatience = 10;
}  // namespace

WorkerStarts::WorkerStarts(const Settings& settings, const WorkerPool& pool)
    : settings_(settings), pool_(pool) {}

WorkerStarts::~WorkerStarts() = default;

int WorkerStarts::warm(double cpus) const {
  const int64_t warm =
      settings_.prestart_workers >= 0 ? settings_.prestart_workers : static_cast<int64_t>(cpus);
  return static_cast<int>(std::min(warm, settings_.max_workers));
}

void WorkerStarts::begin_pass() {
  needs_.clear();
  held_.clear();
  actors_waiting_ = 0;
  paused_until_us_ = -1;
}

bool WorkerStarts::backs_off(const WorkerKind& kind, Now now) const {
  auto it = backoffs_.find(kind);
  return it != backoffs_.end() && now.steady_us < it->second.not_before_us;
}

int64_t WorkerStarts::pause_us() const {
  return std::clamp<int64_t>((pool_.blocked() - kBlockedWithoutPause) * kPausePerBlockedUs, 0,
                             settings_.blocked_start_pause_max_ms * 1000);
}

WorkerStarts::Hold WorkerStarts::find_hold(const WorkerKind& kind, Now now) const {
  if (backs_off(kind, now)) return Hold::kBackoff;
  if (pool_.count(WorkerState::kStarting) >= settings_.worker_start_concurrency)
    return Hold::kConcurrency;
  // After a failure only one process is started at a time, until one registers.
  if (backoffs_.contains(kind) && pool_.starting(kind) > 0) return Hold::kBackoff;
  auto needs = needs_.find(kind);
  if (needs != needs_.end() && needs->second.actors > pool_.starting(kind)) return Hold::kNone;
  // Processes that are starting may become actors. They count only if there are more of them.
  const int for_actors = std::min(actors_waiting_, pool_.count(WorkerState::kStarting));
  if (pool_.pooled() - pool_.blocked() - for_actors >= settings_.max_workers)
    return Hold::kMaxWorkers;
  return now.steady_us < last_start_us_ + pause_us() ? Hold::kPause : Hold::kNone;
}

WorkerStarts::Hold WorkerStarts::ask(const WorkerKind& kind, Now now) {
  Hold hold = find_hold(kind, now);
  if (hold == Hold::kNone) {
    held_.erase(kind);
  } else {
    held_[kind] = hold;
  }
  if (hold == Hold::kPause) paused_until_us_ = last_start_us_ + pause_us();
  return hold;
}

void WorkerStarts::succeeded(const WorkerKind& kind) { backoffs_.erase(kind); }

bool WorkerStarts::failed(const WorkerKind& kind, const std::string& why, Now now) {
  if (backoffs_.size() >= kMaxBackoffKinds && !backoffs_.contains(kind))
    backoffs_.erase(backoffs_.begin());
  Backoff& backoff = backoffs_[kind];
  backoff.why = why;
  // Otherwise nothing of this kind was started since the failure that is counted last: this process
  // was started beside that one, and one cause, such as the end of the fork server, may end them
  // all.
  if (!backs_off(kind, now)) {
    ++backoff.failures;
    backoff.not_before_us = now.steady_us + std::min(kMaxBackoffUs, kFirstBackoffUs << std::min(
                                                                        backoff.failures - 1, 10));
  }
  return backoff.failures > settings_.worker_start_retries;
}

WorkerStarts::Hold WorkerStarts::held(const WorkerKind& kind) const {
  auto it = held_.find(kind);
  return it == held_.end() ? Hold::kNone : it->second;
}

std::string WorkerStarts::describe(const WorkerKind& kind) const {
  switch (held(kind)) {
    case Hold::kBackoff: {
      auto it = backoffs_.find(kind);
      return fmt::format(
          "a worker process, whose start is tried {} times (worker_start_retries) "
          "and has failed so far: {}",
          settings_.worker_start_retries + 1,
          it == backoffs_.end() ? "the cause is not known" : it->second.why);
    }
    case Hold::kConcurrency:
      return fmt::format(
          "a worker process: the node is starting {} others, which is the limit "
          "(worker_start_concurrency)",
          settings_.worker_start_concurrency);
    case Hold::kMaxWorkers:
      return fmt::format(
          "a worker process: {} of the node run or start to run tasks, which is the "
          "limit (max_workers)",
          settings_.max_workers);
    case Hold::kPause:
      return fmt::format(
          "a worker process: those that take the places of the {} blocked tasks are "
          "started with pauses (blocked_start_pause_max_ms)",
          pool_.blocked());
    case Hold::kNone: break;
  }
  return "a worker process, which is being started";
}

std::string WorkerStarts::warning(const WorkerKind& kind, JobId job, const std::string& what,
                                  int64_t since_us, Now now) {
  const Hold hold = held(kind);
  if (hold == Hold::kNone || hold == Hold::kPause) return "";
  const int patience = hold == Hold::kMaxWorkers ? 1 : kConcurrencyPatience;
  if (now.steady_us - since_us < patience * settings_.infeasible_warning_after_ms * 1000) return "";
  if (!told_.emplace(job, hold).second) return "";
  return fmt::format("{} waits for {}. See `rayctl status` and `rayctl debug`.",
                     what.empty() ? "A task or actor" : what, describe(kind));
}

void WorkerStarts::forget(JobId job) {
  std::erase_if(told_, [&](const auto& told) { return told.first == job; });
}

void WorkerStarts::need_for_task(const WorkerKind& kind) { ++needs_[kind].tasks; }

void WorkerStarts::need_for_actor(const WorkerKind& kind) {
  ++needs_[kind].actors, ++actors_waiting_;
}

}  // namespace rt::node
