#include "daemons/node_manager/service/figures.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/tls/tls.h"
#include "daemons/node_manager/process/host_stats.h"

namespace rt::node {

Figures::Figures(net::Loop& loop, const NodeManagerOptions& options, HeadLink& head,
                 LoadReports& reports, NodeParts node)
    : loop_(loop),
      options_(options),
      head_(head),
      reports_(reports),
      node_(node),
      start_time_ms_(wall_now_us() / 1000),
      last_load_(host_load(options.log_directory())),
      alarm_(loop, [this] { send_sample(); }) {}

Status Figures::listen() {
  MetricsEndpointOptions options;
  options.address = net::Address::tcp(
      options_.tcp.host.empty() ? options_.node_ip : options_.tcp.host, options_.metrics_port);
  options.listen_fd = options_.metrics_listen_fd;
  options.token = options_.token;
  // With invalid TLS settings the RPC server would not have started.
  if (const auto& tls = tls::Tls::of_process()) options.tls = tls->get();
  options.node_socket = options_.socket_path;
  options.store_socket = options_.store_socket;
  options.session_name = options_.session_name();
  options.version = RT_VERSION;
  options.node_ip = options_.node_ip;
  options.node_id_hex = options_.node_id.hex();
  options.log_directory = options_.log_directory();
  RT_ASSIGN(endpoint_, MetricsEndpoint::start(loop_, std::move(options)));
  return {};
}

void Figures::begin_samples() {
  if (!alarm_.is_set() && options_.settings.metrics_report_interval_ms > 0) send_sample();
}

void Figures::record(const WorkerId& process, const proto::MetricsReport& report) {
  if (programs_.report(process, report)) return;
  RT_WARN(
      "more than {} metric series on this node (each combination of name and tag values is one); "
      "some metrics of process {} and others are dropped",
      MetricsTable::kMaxSeries, report.pid());
}

// The figures of the object store are those of its last heartbeat.
void Figures::send_sample() {
  alarm_.ring_by(steady_now_us() + options_.settings.metrics_report_interval_ms * 1000);
  proto::HostStats now = host_load(options_.log_directory());
  HostRates rates = host_rates(last_load_, now);
  proto::NodeSample sample;
  sample.set_node_id(options_.node_id.binary());
  sample.set_cpu_percent(static_cast<float>(rates.cpu_percent));
  sample.set_received_per_s(static_cast<float>(rates.received));
  sample.set_sent_per_s(static_cast<float>(rates.sent));
  sample.set_memory_total(now.memory_total());
  sample.set_memory_used(now.memory_total() - now.memory_available());
  for (const proto::Disk& disk : now.disks()) {  // There is at most the one of the logs.
    sample.set_disk_used(disk.used());
    sample.set_disk_total(disk.total());
  }
  const NodeCore& core = node_.core;
  sample.set_store_used(node_.store ? node_.store->used() : 0);
  sample.set_store_capacity(core.view().resources().total().units("object_store_memory") /
                            ResourceSet::kUnit);
  sample.set_running(core.view().pool().count(WorkerState::kLeased));
  auto [waiting, infeasible] = core.view().leases().waiting_tasks();
  sample.set_waiting(static_cast<int>(std::min<int64_t>(waiting + infeasible, 1 << 30)));
  sample.set_actors(core.view().pool().count(WorkerState::kActor));
  sample.set_workers(core.view().pool().processes());
  last_load_ = std::move(now);
  head_.send_oneway(&proto::HeadMetricsService::Stub::ReportSample, sample);
}

void Figures::GetFigures(google::protobuf::RpcController*, const proto::Empty*,
                         proto::NodeFigures* reply, google::protobuf::Closure* done) {
  const NodeCore& core = node_.core;
  core.view().resources().total().to_proto(reply->mutable_total());
  core.view().resources().available().to_proto(reply->mutable_available());
  const WorkerPool& pool = core.view().pool();
  reply->set_starting_workers(pool.count(WorkerState::kStarting));
  reply->set_idle_workers(pool.count(WorkerState::kIdle));
  reply->set_leased_workers(pool.count(WorkerState::kLeased));
  reply->set_actors(pool.count(WorkerState::kActor));
  reply->set_drivers(pool.count(WorkerState::kDriver));
  auto [waiting, infeasible] = core.view().leases().waiting_tasks();
  reply->set_waiting_tasks(waiting);
  reply->set_infeasible_tasks(infeasible);
  *reply->mutable_counters() = core.view().counters();
  reply->set_connections(static_cast<int>(node_.sessions.size()));
  reply->set_queued_bytes(static_cast<int64_t>(node_.sessions.queued_bytes()));
  reply->set_store_hangs(node_.store && !node_.store->problem().empty());
  done->Run();
}

void Figures::fill_stats(proto::NodeStats* stats, google::protobuf::Closure* done) {
  // A pending report is sent before the reply, so that a client that asks the head next does not
  // see an older state than the one it gets here.
  reports_.hurry();
  const NodeCore& core = node_.core;
  for (const auto& [id, worker] : core.view().pool().all()) {
    if (worker->state != WorkerState::kDriver && worker->connected)
      *stats->add_workers() = core.view().workers().address_of(*worker);
  }
  stats->set_idle_workers(core.view().pool().count(WorkerState::kIdle));
  stats->set_leased_workers(core.view().pool().count(WorkerState::kLeased));
  stats->set_actors(static_cast<int>(core.view().actors().size()));
  if (!node_.store) return done->Run();
  node_.store->get_stats([this, stats, done, alive = alive_](Result<proto::StoreStats> store) {
    if (store) {
      if (*alive) reports_.hurry();
      stats->set_object_store_used(store->used());
      stats->set_object_store_capacity(store->capacity());
    }
    done->Run();
  });
}

}  // namespace rt::node
