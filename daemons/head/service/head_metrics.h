// Everything the head counts and keeps for people: the history of metrics, counts of ended tasks
// and the targets of Prometheus. Serves them as proto::HeadMetricsService.
//
// Loop thread only. The server that owns this object outlives it.
#pragma once

#include <memory>

#include "common/proto/head.pb.h"
#include "common/proto/metrics.pb.h"
#include "daemons/head/core/metrics_history.h"
#include "daemons/head/service/discovery_file.h"
#include "daemons/head/storage/storage.h"

namespace rt::head {

class HeadServer;

class HeadMetrics final : public proto::HeadMetricsService {
 public:
  // If `session_dir` is empty, no targets file is written. `in_temp_root` also writes one in the
  // temp root above it (discovery_file.h).
  HeadMetrics(HeadServer& server, const std::string& session_dir, bool in_temp_root);
  ~HeadMetrics() override;

  // Counts the ends of tasks in a batch, once the history has answered for it. A batch that was
  // there before (kDuplicate) was counted then.
  void count(const proto::TaskEventBatch& batch, const Result<History::Outcome>& outcome);
  void membership_changed();

  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;
  void ReportSample(Controller* call, const proto::NodeSample* sample, proto::Empty* reply,
                    Closure* done) override;
  void GetHistory(Controller* call, const proto::MetricsHistoryRequest* request,
                  proto::MetricsHistoryReply* reply, Closure* done) override;
  void GetHeadStats(Controller* call, const proto::Empty* request, proto::HeadStats* reply,
                    Closure* done) override;

 private:
  void sample_cluster();
  void write_targets();

  HeadServer& server_;
  MetricsHistory history_;
  std::shared_ptr<DiscoveryFile> targets_;  // Shared with the disk thread.
  int64_t reported_ = 0, dropped_ = 0, finished_ = 0, failed_ = 0;
  // The values at the last sample.
  int64_t finished_before_ = 0, failed_before_ = 0, sampled_at_us_ = 0;
  uint64_t sample_timer_ = 0, targets_timer_ = 0;
};

}  // namespace rt::head
