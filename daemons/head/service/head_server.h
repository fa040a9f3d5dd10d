// The running head: owns the core, its storage and its connections, and carries out the core's
// decisions.
//
// Lifecycle: open() reads the state, start() listens once the new incarnation is durable, the
// destructor finishes writes that were accepted. Threads: everything runs in the loop's thread;
// the storage posts its completions there.
#pragma once

#include <memory>
#include <utility>

#include "common/net/core_driver.h"
#include "common/rpc/client.h"
#include "common/rpc/server.h"
#include "daemons/head/core/head_core.h"
#include "daemons/head/service/connections.h"
#include "daemons/head/service/head_metrics.h"
#include "daemons/head/storage/disk_thread.h"
#include "daemons/head/storage/storage.h"
#include "daemons/head/storage/storage_health.h"
#include "observability/profile_service/profile_service.h"

namespace rt::head {

class HeadRpc;
class JobLogs;

class HeadServer final : public HeadSink {
 public:
  struct Options {
    HeadOptions core;
    std::string state_dir;
    std::string session_dir;       // If empty, no file of Prometheus targets is written.
    bool private_cluster = false;  // The cluster belongs to one program and ends with it.
    std::string token;             // If empty, peers need not authenticate.
    // A client asked the head to stop and has been answered.
    std::function<void()> on_stop;
  };
  // Opens or creates the state and reads it. Errors name file, cause and remedy. `loop` must
  // outlive the server.
  static Result<std::unique_ptr<HeadServer>> open(net::Loop& loop, Options options);
  ~HeadServer() override;

  // Takes ownership of the listening descriptor. Calls `done` once, when the server listens or
  // cannot.
  void start(int listening_fd, std::function<void(Status)> done);

  const HeadCore& core() const { return driver_->core(); }
  // Passes an event to the core; see net::CoreDriver.
  template <class Event>
  auto drive(Event&& event) {
    return driver_->drive(std::forward<Event>(event));
  }
  History& history() { return *history_; }
  net::Loop& loop() { return loop_; }
  DiskThread& disk() { return disk_; }
  const StorageHealth& storage_health() const { return health_; }
  // Says what is wrong with the head's files, or "". Also tells of files that were removed while
  // the head has them open, which writes do not notice.
  std::string storage_failure() const;
  // Records the outcome of a write to one of the files. A history that fails is probed every
  // storage_retry_ms, because its next events may be long in coming; the core writes the state's
  // records again anyway.
  void wrote(StorageHealth::File file, const Status& outcome);
  HeadMetrics& metrics() { return *metrics_; }
  // Fills in the number of connections and the bytes that wait to be sent.
  void fill_traffic(proto::HeadStats* stats) const;
  const Settings& settings() const { return options_.core.settings; }
  const Connections& connections() const { return connections_; }
  // Calls Options::on_stop after a short delay, in which the reply to the client leaves.
  void stop_requested();
  // Connects to an address and closes the connection. Calls `done` with the outcome, unless this
  // server is destroyed first.
  void try_address(const std::string& ip, int port, std::function<void(Status)> done);

  // The methods of HeadSink.
  void persist(uint64_t id, Batch batch) override;
  void create_actor(const NodeLink& node, const proto::CreateActorRequest& request) override;
  void kill_worker(const NodeLink& node, const proto::KillWorkerRequest& request) override;
  void prepare_bundles(const NodeLink& node, const proto::PrepareBundlesRequest& request) override;
  void return_bundles(const NodeLink& node, const proto::ReturnBundlesRequest& request) override;
  void start_job(const NodeLink& node, const proto::StartJobProcessRequest& request) override;
  void stop_job(const NodeLink& node, const std::string& submission_id) override;
  void remove_job_log(const NodeLink& node, const std::string& submission_id) override;
  void probe(const NodeId& node, const std::string& ip, int port) override;
  void push(ConnId conn, const proto::HeadEvent& event) override;
  void close(ConnId conn, const Error& why) override;
  void membership_changed() override;
  void log(const std::string& text) override;

 private:
  HeadServer(net::Loop& loop, Options options);
  Status open_state();
  void greet(const std::shared_ptr<rpc::Connection>& connection);
  void connection_closed(ConnId id);
  void first_commit(const Status& status);
  PostTask poster();
  // Calls `method` on the node. `done` always runs later: with kUnavailable if the node is not
  // connected.
  template <class Method, class Done>
  void call_node(const NodeLink& node, Method method,
                 const typename rpc::StubMethod<Method>::RequestType& request, int64_t timeout_us,
                 Done done);

  net::Loop& loop_;
  Options options_;
  // Shared with callbacks that may outlive this object, and false once it is destroyed.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  DiskThread disk_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<History> history_;
  StorageHealth health_;
  std::unique_ptr<net::CoreDriver<HeadCore>> driver_;
  std::unique_ptr<HeadMetrics> metrics_;
  std::unique_ptr<JobLogs> job_logs_;
  std::unique_ptr<HeadRpc> rpc_;
  profile::ProfileServer profile_{loop_};
  Connections connections_;
  net::Loop::TimerId probe_timer_ = 0;
  int64_t dropped_log_pushes_ = 0;
  int listening_fd_ = -1;
  bool state_durable_ = false;
  std::function<void(Status)> started_;
  // The last member, because its destructor closes connections, whose handlers use the members
  // above.
  std::unique_ptr<rpc::Server> server_;
};

template <class Method, class Done>
void HeadServer::call_node(const NodeLink& node, Method method,
                           const typename rpc::StubMethod<Method>::RequestType& request,
                           int64_t timeout_us, Done done) {
  using Answer = Result<typename rpc::StubMethod<Method>::ReplyType>;
  auto guarded = [alive = alive_, done = std::move(done)](Answer answer) mutable {
    if (*alive) done(std::move(answer));
  };
  if (auto open = connections_.find(node.conn))
    return rpc::call(*open, method, request, timeout_us, std::move(guarded));
  loop_.post([guarded = std::move(guarded)]() mutable {
    guarded(make_error(Code::kUnavailable, "the node is not connected"));
  });
}

}  // namespace rt::head
