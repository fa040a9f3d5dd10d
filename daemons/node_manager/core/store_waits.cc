#include "daemons/node_manager/core/store_waits.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/readable.h"
#include "common/base/remedies.h"

namespace rt::node {
namespace {

constexpr int64_t kToldAfterMs = 1'000;
constexpr int64_t kEpisodeEndsUs = 10'000'000;

// The count with the name of what waits: "2 puts or results of tasks".
std::string counted(int64_t count, proto::StoreWaiter::Kind kind) {
  const char* plural = count == 1 ? "" : "s";
  switch (kind) {
    case proto::StoreWaiter::ARGUMENTS:
      return fmt::format("{} task{} with {} arguments", count, plural,
                         count == 1 ? "its" : "their");
    case proto::StoreWaiter::COPIES:
      return fmt::format("{} object{} of other nodes", count, plural);
    default: return fmt::format("{} put{} or result{} of tasks", count, plural, plural);
  }
}

}  // namespace

StoreWaits::StoreWaits(NodeId node, std::string node_ip, int64_t create_wait_ms) {
  waits_.set_node_id(node.binary());
  waits_.set_node_ip(std::move(node_ip));
  waits_.set_fails_after_ms(create_wait_ms);
}

StoreWaits::Turn StoreWaits::take(const proto::StoreStats& stats, Now now) {
  Turn turn;
  if (stats.waiters_size() == 0 && !waits() && told_.empty()) return turn;
  proto::StoreWaits next = waits_;
  next.set_used(stats.used());
  next.set_capacity(stats.capacity());
  next.set_no_pages(stats.no_pages());
  *next.mutable_waiters() = stats.waiters();
  // The use of the store is nobody's concern as long as nothing waits.
  const bool nothing = stats.waiters_size() == 0 && !waits();
  turn.changed = !nothing && next.SerializeAsString() != waits_.SerializeAsString();
  waits_ = std::move(next);
  std::set<JobId> late;
  for (const proto::StoreWaiter& waiter : waits_.waiters()) {
    const JobId job = JobId::from_binary(waiter.job_id());
    if (auto known = told_.find(job); known != told_.end()) known->second = now.steady_us;
    if (!job.is_nil() && now.wall_us / 1000 - waiter.since_ms() >= kToldAfterMs) late.insert(job);
  }
  std::erase_if(told_,
                [&](const auto& entry) { return now.steady_us - entry.second >= kEpisodeEndsUs; });
  for (const JobId& job : late) {
    if (!told_.emplace(job, now.steady_us).second) continue;
    proto::LeaseNotice notice;
    notice.set_job_id(job.binary());
    notice.set_message(describe(job, now));
    turn.notices.push_back(std::move(notice));
  }
  return turn;
}

std::string StoreWaits::describe(const JobId& job, Now now) const {
  std::map<proto::StoreWaiter::Kind, int64_t> counts;
  int64_t bytes = 0, since_ms = now.wall_us / 1000;
  for (const proto::StoreWaiter& waiter : waits_.waiters()) {
    if (JobId::from_binary(waiter.job_id()) != job) continue;
    counts[waiter.kind()] += waiter.count();
    bytes += waiter.bytes();
    since_ms = std::min(since_ms, waiter.since_ms());
  }
  std::string what;
  int64_t all = 0;
  for (const auto& [kind, count] : counts) {
    what += (what.empty() ? "" : ", ") + counted(count, kind);
    all += count;
  }
  const bool values = counts.contains(proto::StoreWaiter::VALUES);
  return fmt::format(
      "{} wait{} for room in the object store of node {} since {}: {} wanted, {} of {} used{}. {} "
      "after {} ms without room (create_wait_ms). {}. `rayctl debug` says what holds the room.",
      what, all == 1 ? "s" : "", waits_.node_ip(), local_time(since_ms),
      binary_bytes(static_cast<double>(bytes)), binary_bytes(static_cast<double>(waits_.used())),
      binary_bytes(static_cast<double>(waits_.capacity())),
      waits_.no_pages().empty() ? "" : ", and " + waits_.no_pages(),
      values ? "They fail with ObjectStoreFullError"
             : "They fail with ObjectStoreFullError if no running task gives room back, and",
      waits_.fails_after_ms(), full_store_remedy(!waits_.no_pages().empty()));
}

}  // namespace rt::node
