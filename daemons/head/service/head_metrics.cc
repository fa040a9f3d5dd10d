#include "daemons/head/service/head_metrics.h"

#include <algorithm>

#include "common/tls/tls.h"
#include "daemons/head/service/head_server.h"
#include "observability/api_json/metrics_targets.h"
#include "observability/events/task_digest.h"

namespace rt::head {
namespace {

// Nodes come in crowds: the file is written this long after the first change.
constexpr int64_t kTargetsDelayUs = 100'000;
// Samples older than this many intervals are left out of the cluster's sums.
constexpr int64_t kFreshIntervals = 3;

}  // namespace

HeadMetrics::HeadMetrics(HeadServer& server, const std::string& session_dir, bool in_temp_root)
    : server_(server),
      history_(server.settings().metrics_history_ms, server.settings().metrics_history_max_bytes),
      sampled_at_us_(steady_now_us()) {
  if (!session_dir.empty()) targets_ = std::make_shared<DiscoveryFile>(session_dir, in_temp_root);
  int64_t interval_us = server_.settings().metrics_report_interval_ms * 1000;
  if (interval_us > 0)
    sample_timer_ = server_.loop().run_after(interval_us, [this] { sample_cluster(); });
}

HeadMetrics::~HeadMetrics() {
  for (uint64_t timer : {sample_timer_, targets_timer_}) {
    if (timer) server_.loop().cancel(timer);
  }
}

void HeadMetrics::count(const proto::TaskEventBatch& batch,
                        const Result<History::Outcome>& outcome) {
  if (outcome && *outcome == History::Outcome::kDuplicate) return;
  reported_ += batch.count();
  dropped_ += batch.dropped();
  if (!outcome) {
    dropped_ += batch.count();
    return;
  }
  if (auto digest = unpack_task_digest(batch.digest()); !batch.digest().empty() && digest) {
    for (const auto& group : digest->groups) (group.error ? failed_ : finished_) += group.events;
    return;
  }
  // A batch with too many different tasks has no digest.
  auto events = unpack_task_events(batch.packed());
  if (!events) return;
  for (const TaskEvent& event : events->events) {
    if (event.kind != TaskEvent::kSpan) ++(event.error ? failed_ : finished_);
  }
}

void HeadMetrics::ReportSample(Controller* call, const proto::NodeSample* sample, proto::Empty*,
                               Closure* done) {
  const NodeState* node =
      NodeId::is_valid(sample->node_id())
          ? server_.core().view().cluster().find(NodeId::from_binary(sample->node_id()))
          : nullptr;
  if (node && node->alive()) {
    history_.add(node->id, node->info.ip(), *sample, system_now());
  } else {
    rpc::server_call(call).fail(make_error(
        Code::kInvalid, "the metrics sample names a node that is not alive in this cluster"));
  }
  done->Run();
}

void HeadMetrics::sample_cluster() {
  const int64_t interval_ms = server_.settings().metrics_report_interval_ms;
  sample_timer_ = server_.loop().run_after(interval_ms * 1000, [this] { sample_cluster(); });
  const HeadCore& core = server_.core();
  ClusterUse use;
  for (const auto& [id, node] : core.view().cluster().nodes()) {
    if (!node.alive()) continue;
    ++use.nodes;
    use.cpus += node.total.get("CPU");
    use.cpus_used += node.total.get("CPU") - Cluster::free_now(node).get("CPU");
    for (const auto& demand : node.waiting.demands)
      use.waiting += static_cast<double>(demand.count());
  }
  for (const auto& [id, actor] : core.view().actors().all()) {
    if (actor.dead()) continue;
    ++(actor.phase == Actor::Phase::kAlive ? use.actors : use.actors_pending);
  }
  use.jobs = static_cast<double>(
      std::count_if(core.view().jobs().all().begin(), core.view().jobs().all().end(),
                    [](const auto& job) { return !job.second.finished(); }));
  const Now now = system_now();
  double seconds = std::max(1e-3, static_cast<double>(now.steady_us - sampled_at_us_) / 1e6);
  use.finished_per_s = static_cast<double>(finished_ - finished_before_) / seconds;
  use.failed_per_s = static_cast<double>(failed_ - failed_before_) / seconds;
  finished_before_ = finished_;
  failed_before_ = failed_;
  sampled_at_us_ = now.steady_us;
  history_.add_cluster(use, kFreshIntervals * interval_ms, now);
}

void HeadMetrics::GetHistory(Controller*, const proto::MetricsHistoryRequest* request,
                             proto::MetricsHistoryReply* reply, Closure* done) {
  auto alive = [this](const NodeId& id) {
    const NodeState* node = server_.core().view().cluster().find(id);
    return node && node->alive();
  };
  history_.fill(*request, alive, reply, system_now());
  reply->set_interval_ms(server_.settings().metrics_report_interval_ms);
  done->Run();
}

void HeadMetrics::GetHeadStats(Controller*, const proto::Empty*, proto::HeadStats* stats,
                               Closure* done) {
  server_.fill_traffic(stats);
  stats->set_task_events_reported(reported_);
  stats->set_task_events_dropped(dropped_);
  stats->set_tasks_finished(finished_);
  stats->set_tasks_failed(failed_);
  stats->set_history_samples(static_cast<int64_t>(history_.samples()));
  stats->set_storage_failing(!server_.storage_failure().empty());
  stats->set_storage_write_failures(server_.storage_health().failures());
  const Jobs& jobs = server_.core().view().jobs();
  int64_t running = std::count_if(jobs.all().begin(), jobs.all().end(),
                                  [](const auto& job) { return !job.second.finished(); });
  stats->set_jobs_finished(jobs.started() - running);
  for (const auto& [id, node] : server_.core().view().cluster().nodes()) {
    if (!node.alive() && node.info.death_reason() == proto::UNEXPECTED_TERMINATION)
      stats->set_nodes_died(stats->nodes_died() + 1);
  }
  done->Run();
}

void HeadMetrics::membership_changed() {
  if (!targets_ || targets_timer_) return;
  targets_timer_ = server_.loop().run_after(kTargetsDelayUs, [this] { write_targets(); });
}

void HeadMetrics::write_targets() {
  targets_timer_ = 0;
  proto::GetNodesRequest request;
  request.set_alive_only(true);
  auto nodes = server_.core().view().get_nodes(request, system_now());
  std::string text = api_json::metrics_targets({nodes.nodes().begin(), nodes.nodes().end()},
                                               server_.core().view().dashboard(),
                                               tls::requested_by_environment()) +
                     "\n";
  server_.disk().post([targets = targets_, text = std::move(text)] { targets->write(text); });
}

}  // namespace rt::head
