// Figures about this node: for clients (GetStats, GetFigures), for Prometheus, and samples for the
// head's history. It also keeps the metrics of user programs. Threads: the loop's.
#pragma once

#include <memory>

#include "common/net/alarm.h"
#include "common/proto/metrics.pb.h"
#include "common/proto/node_manager.pb.h"
#include "daemons/node_manager/core/metrics_table.h"
#include "daemons/node_manager/service/head_link.h"
#include "daemons/node_manager/service/load_reports.h"
#include "daemons/node_manager/service/metrics_endpoint.h"
#include "daemons/node_manager/service/node_parts.h"
#include "daemons/node_manager/service/options.h"

namespace rt::node {

class Figures final : public proto::NodeMetricsService {
 public:
  // `options`, `head` and `reports` outlive the figures.
  Figures(net::Loop& loop, const NodeManagerOptions& options, HeadLink& head, LoadReports& reports,
          NodeParts node);
  ~Figures() override { *alive_ = false; }

  // Opens GET /metrics. Fails as MetricsEndpoint::start().
  Status listen();
  int metrics_port() const { return endpoint_->port(); }  // after listen()
  // Returns the wall clock's time at which this node-manager started.
  int64_t start_time_ms() const { return start_time_ms_; }
  // The node is registered: the head gets samples. Calls after the first have no effect.
  void begin_samples();

  // ---- metrics of user programs
  void record(const WorkerId& process, const proto::MetricsReport& report);
  void process_ended(const WorkerId& process) { programs_.process_ended(process); }
  const MetricsTable& programs() const { return programs_; }

  // Runs `done` when the store, too, has told its figures.
  void fill_stats(proto::NodeStats* stats, google::protobuf::Closure* done);

  // proto::NodeMetricsService
  void GetFigures(google::protobuf::RpcController*, const proto::Empty*, proto::NodeFigures* reply,
                  google::protobuf::Closure* done) override;

 private:
  // Sends one sample and plans the next.
  void send_sample();

  net::Loop& loop_;
  const NodeManagerOptions& options_;
  HeadLink& head_;
  LoadReports& reports_;
  const NodeParts node_;
  const int64_t start_time_ms_;
  MetricsTable programs_;
  std::unique_ptr<MetricsEndpoint> endpoint_;
  proto::HostStats last_load_;  // at the last sample
  net::Alarm alarm_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
