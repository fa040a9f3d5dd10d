// What the head counts and remembers for people: the history of metrics, ends of tasks, the targets
// of Prometheus; and who asks for it.
//
// Threads: the loop's. Outlived by the server it belongs to.
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
  // `session_dir` empty: no file is written.
  HeadMetrics(HeadServer& server, const std::string& session_dir, bool in_temp_root);
  ~HeadMetrics() override;

  // Ends of tasks in a batch are counted when the history has taken it: one that came again was
  // counted before.
  void count(const proto::TaskEventBatch& batch, const Result<History::Taken>& taken);
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
  std::shared_ptr<DiscoveryFile> targets_;  // shared with the disk's thread
  int64_t reported_ = 0, dropped_ = 0, finished_ = 0, failed_ = 0;
  int64_t finished_before_ = 0, failed_before_ = 0, sampled_at_us_ = 0;  // at the last sample
  uint64_t sample_timer_ = 0, targets_timer_ = 0;
};

}  // namespace rt::head
