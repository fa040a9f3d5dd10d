#include "daemons/head/core/consequences.h"

#include <fmt/core.h>

#include <utility>

#include "daemons/head/core/rewrites.h"

namespace rt::head {
namespace {

constexpr size_t kRecentFailures = 20;
constexpr int64_t kSecondUs = 1'000'000;

}  // namespace

Consequences::Consequences(HeadParts& head) : head_(head) {}

void Consequences::end_event(Now now) {
  // Each step may cause work for an earlier one, so the steps repeat until nothing is left to do.
  for (;;) {
    head_.actors.end_event(now);
    head_.groups.end_event(now);
    if (exchange_news(now)) continue;
    head_.submitted.end_event();
    head_.jobs.forget_finished(head_.options.settings.finished_jobs_kept);
    if (head_.kv.take_released()) write_ends(head_);
    auto due = head_.journal.flush();
    if (due.empty()) break;
    for (auto& continuation : due) continuation({}, now);
  }
  head_.cluster.publish(
      now, [this](const proto::HeadEvent& event) { head_.subscriptions.publish_nodes(event); });
  if (ended_now_.finished_jobs_size() > 0 || ended_now_.over_jobs_size() > 0)
    tell_nodes(std::exchange(ended_now_, {}), now);
}

void Consequences::tell_nodes(const proto::HeadEvent& news, Now now) {
  // A node may be silent for node_timeout_ms until its connection breaks, and then away for as
  // long.
  const int64_t kept_us = 2 * head_.options.settings.node_timeout_ms * 1000;
  while (!told_.empty() && told_.front().first + kSecondUs + kept_us < now.steady_us)
    told_.pop_front();
  if (told_.empty() || told_.back().first + kSecondUs < now.steady_us)
    told_.emplace_back(now.steady_us, proto::HeadEvent());
  told_.back().second.MergeFrom(news);
  head_.cluster.broadcast(news);
}

proto::HeadEvent Consequences::missed() const {
  proto::HeadEvent missed;
  if (settling_) {
    // An earlier head may have told of these jobs, or have ended before it could.
    for (const JobId& job : head_.jobs.finished()) {
      missed.add_finished_jobs(job.binary());
      if (!head_.actors.directory().any_of_job(job)) missed.add_over_jobs(job.binary());
    }
  }
  for (const auto& [since_us, news] : told_) missed.MergeFrom(news);
  return missed;
}

bool Consequences::exchange_news(Now now) {
  const ActorManager::Ended ended = head_.actors.take_ended();
  for (const JobId& job : ended.jobs) job_over(job);
  head_.groups.owners_dead(ended.workers, now);
  for (const ActorId& actor : ended.actors) head_.groups.actor_dead(actor, now);
  const GroupManager::News news = head_.groups.take_news();
  for (const auto& [group, why] : news.removed) head_.actors.group_removed(group, why, now);
  if (news.created) head_.actors.want_placement();
  return !news.none();
}

void Consequences::node_lost(const NodeId& id, proto::NodeDeath reason, const std::string& why,
                             Now now) {
  NodeState* node = head_.cluster.find(id);
  if (!node || !node->alive()) return;
  head_.cluster.declare_dead(*node, reason, why, now);
  head_.sink.log(fmt::format("node {} ({}) is dead: {}", node->info.ip(), id.hex(), why));
  for (const JobId& job : head_.jobs.running_on(id)) end_job(job, now);
  const int losers = head_.groups.node_lost(*node, now);
  head_.actors.node_lost(*node, now);
  const std::string lost = losers == 0 ? ""
                                       : fmt::format("; {} placement group{} lost bundles with it",
                                                     losers, losers == 1 ? "" : "s");
  if (reason == proto::UNEXPECTED_TERMINATION || losers > 0) {
    recent_failures_.push_back(
        fmt::format("node {} ({}) {}: {}{}", node->info.ip(), id.hex(),
                    reason == proto::UNEXPECTED_TERMINATION ? "died" : "left", why, lost));
    if (recent_failures_.size() > kRecentFailures) recent_failures_.pop_front();
  }
  head_.submitted.node_lost(*node, now);
  settle_if_complete(now);
}

void Consequences::begin_settling(Now now) {
  settling_ = true;
  // The disk may have taken a job's end alone, and refused to delete what the job kept.
  for (const JobId& job : head_.kv.jobs()) {
    if (!head_.jobs.running(job) && !head_.actors.directory().any_of_job(job))
      head_.kv.release_job(job);
  }
  settle_if_complete(now);
}

void Consequences::settle_if_complete(Now now) {
  if (!settling_ || head_.cluster.awaiting_nodes()) return;
  settling_ = false;
  head_.groups.nodes_settled(now);
  head_.actors.nodes_settled(now);
  head_.submitted.nodes_settled(now);
  for (const auto& [number, job] : head_.jobs.all()) {
    const NodeState* node = head_.cluster.find(NodeId::from_binary(job.driver_node_id()));
    if (!job.finished() && (!node || !node->alive())) end_job(job_id_from_int(number), now);
  }
}

void Consequences::end_job(const JobId& id, Now now) {
  if (!head_.jobs.finish(id, now)) return;
  head_.sink.log(fmt::format("job {} has ended", id.hex()));
  ended_now_.add_finished_jobs(id.binary());
  head_.actors.job_finished(id, now);
  head_.groups.job_finished(id, now);
  if (!head_.actors.directory().any_of_job(id)) job_over(id);
}

// A detached actor may need code and data of its job for its next start, so these stay until the
// job's last actor is gone.
void Consequences::job_over(const JobId& id) {
  head_.kv.release_job(id);
  ended_now_.add_over_jobs(id.binary());
}

}  // namespace rt::head
