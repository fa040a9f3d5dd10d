// NodeManager: figures about this node for clients, for Prometheus and for the head's history, and
// what it tells of its object store.
#include <fmt/core.h>

#include <algorithm>

#include "common/base/log.h"
#include "common/tls/tls.h"
#include "daemons/node_manager/process/host_stats.h"
#include "daemons/node_manager/service/metrics_endpoint.h"
#include "daemons/node_manager/service/node_manager.h"

namespace rt::node {

Status NodeManager::start_metrics() {
  last_load_ = host_load(log_directory());
  MetricsEndpointOptions options;
  options.address = net::Address::tcp(
      options_.tcp.host.empty() ? options_.node_ip : options_.tcp.host, options_.metrics_port);
  options.listen_fd = options_.metrics_listen_fd;
  options.token = options_.token;
  if (const auto& tls = tls::Tls::of_process())
    options.tls = tls->get();  // with invalid TLS settings the RPC server has not started
  options.node_socket = options_.socket_path;
  options.store_socket = options_.store_socket;
  options.session_name = session_name_;
  options.version = RT_VERSION;
  options.node_ip = options_.node_ip;
  options.node_id_hex = options_.node_id.hex();
  options.log_directory = log_directory();
  RT_ASSIGN(metrics_endpoint_, MetricsEndpoint::start(loop_, std::move(options)));
  return {};
}

void NodeManager::store_problem_changed() {
  if (stopping_) return;
  const std::string problem = store_->problem();
  const std::string text = problem.empty()
                               ? "The object store of this node answers again."
                               : fmt::format("This node does not work as it should: {}.", problem);
  RT_WARN("{}", text);
  sessions_.tell_drivers(text, false);
  if (registered_once_) events_.on_status(problem.empty() ? status_line() : text);
  load_reports_->changed();
}

// Objects use store memory that no task has requested, so the report to the head subtracts it from
// object_store_memory. Leases on this node do not depend on it.
void NodeManager::fill_report(proto::ResourceReport* report) {
  core_->fill_report(report);
  sessions_.fill_waiting(report);
  auto free = report->mutable_available()->mutable_units()->find("object_store_memory");
  if (!store_) return;
  if (free != report->mutable_available()->mutable_units()->end())
    free->second = std::max<int64_t>(0, free->second - store_->used() * ResourceSet::kUnit);
  report->set_problem(store_->problem());
  if (const auto* waits = store_->waits()) *report->mutable_store_waits() = *waits;
}

void NodeManager::record_metrics(const rpc::Connection& from, const proto::MetricsReport& report) {
  Session* session = sessions_.find(from);
  if (!session || session->worker.is_nil()) return;
  if (metrics_.report(session->worker, report)) return;
  RT_WARN(
      "more than {} metric series on this node (each combination of name and tag values is one); "
      "some metrics of process {} and others are dropped",
      MetricsTable::kMaxSeries, report.pid());
}

// Sends one sample and schedules the next. The object store's use is as of the last heartbeat.
void NodeManager::send_sample() {
  if (options_.settings.metrics_report_interval_ms == 0) return;
  sample_timer_ = loop_.run_after(options_.settings.metrics_report_interval_ms * 1000,
                                  [this] { send_sample(); });
  proto::HostStats now = host_load(log_directory());
  HostRates rates = host_rates(last_load_, now);
  proto::NodeSample sample;
  sample.set_node_id(options_.node_id.binary());
  sample.set_cpu_percent(static_cast<float>(rates.cpu_percent));
  sample.set_received_per_s(static_cast<float>(rates.received));
  sample.set_sent_per_s(static_cast<float>(rates.sent));
  sample.set_memory_total(now.memory_total());
  sample.set_memory_used(now.memory_total() - now.memory_available());
  for (const proto::Disk& disk : now.disks()) {
    sample.set_disk_used(disk.used());
    sample.set_disk_total(disk.total());
  }
  sample.set_store_used(store_ ? store_->used() : 0);
  sample.set_store_capacity(core_->resources().total().units("object_store_memory") /
                            ResourceSet::kUnit);
  sample.set_running(core_->pool().count(WorkerState::kLeased));
  auto [waiting, infeasible] = core_->waiting_tasks();
  sample.set_waiting(static_cast<int>(std::min<int64_t>(waiting + infeasible, 1 << 30)));
  sample.set_actors(core_->pool().count(WorkerState::kActor));
  sample.set_workers(core_->pool().processes());
  last_load_ = std::move(now);
  head_->send_oneway(&proto::HeadMetricsService::Stub::ReportSample, sample);
}

void NodeManager::GetFigures(google::protobuf::RpcController*, const proto::Empty*,
                             proto::NodeFigures* reply, google::protobuf::Closure* done) {
  core_->resources().total().to_proto(reply->mutable_total());
  core_->resources().available().to_proto(reply->mutable_available());
  const WorkerPool& pool = core_->pool();
  reply->set_starting_workers(pool.count(WorkerState::kStarting));
  reply->set_idle_workers(pool.count(WorkerState::kIdle));
  reply->set_leased_workers(pool.count(WorkerState::kLeased));
  reply->set_actors(pool.count(WorkerState::kActor));
  reply->set_drivers(pool.count(WorkerState::kDriver));
  auto [waiting, infeasible] = core_->waiting_tasks();
  reply->set_waiting_tasks(waiting);
  reply->set_infeasible_tasks(infeasible);
  *reply->mutable_counters() = core_->counters();
  reply->set_connections(static_cast<int>(sessions_.size()));
  reply->set_queued_bytes(static_cast<int64_t>(sessions_.queued_bytes()));
  reply->set_store_hangs(store_ && !store_->problem().empty());
  done->Run();
}

void NodeManager::fill_stats(proto::NodeStats* stats, google::protobuf::Closure* done) {
  // A pending report is sent before the reply, so that a client that asks the head next does not
  // see an older state than the one it gets here.
  load_reports_->hurry();
  for (const auto& [id, worker] : core_->pool().all()) {
    if (worker->state != WorkerState::kDriver && worker->connected)
      *stats->add_workers() = core_->address_of(*worker);
  }
  stats->set_idle_workers(core_->pool().count(WorkerState::kIdle));
  stats->set_leased_workers(core_->pool().count(WorkerState::kLeased));
  stats->set_actors(static_cast<int>(core_->actors().size()));
  if (!store_) return done->Run();
  store_->get_stats([this, stats, done, alive = alive_](Result<proto::StoreStats> store) {
    if (store) {
      if (*alive) load_reports_->hurry();
      stats->set_object_store_used(store->used());
      stats->set_object_store_capacity(store->capacity());
    }
    done->Run();
  });
}

}  // namespace rt::node
