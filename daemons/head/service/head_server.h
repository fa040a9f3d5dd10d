// The running head: owns the core, its storage and its connections, and carries out what the core
// decides.
//
// Lifecycle: open() reads the state, start() makes the new incarnation durable and then listens.
// The destructor finishes accepted writes. Threads: everything in the loop's thread; the storage
// posts its completions there.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>

#include "common/profile_service/profile_service.h"
#include "common/rpc/client.h"
#include "common/rpc/server.h"
#include "daemons/head/core/head_core.h"
#include "daemons/head/service/head_metrics.h"
#include "daemons/head/storage/disk_thread.h"
#include "daemons/head/storage/storage.h"
#include "daemons/head/storage/storage_health.h"

namespace rt::head {

class HeadRpc;
class JobLogs;

class HeadServer final : public HeadSink {
 public:
  struct Options {
    HeadOptions core;
    std::string state_dir;
    std::string session_dir;        // empty: no list of what Prometheus scrapes is kept
    bool private_cluster = false;   // one program's own
    std::string token;              // empty: no authentication
    std::function<void()> on_stop;  // a client asked the head to end (it has been answered)
  };
  // Opens (or makes) the state and reads it. Errors name file, cause and remedy. `loop` outlives
  // the server.
  static Result<std::unique_ptr<HeadServer>> open(net::Loop& loop, Options options);
  ~HeadServer() override;

  // Takes the listening descriptor. `done` is called once: listening, or why not.
  void start(int listening_fd, std::function<void(Status)> done);

  HeadCore& core() { return *core_; }
  History& history() { return *history_; }
  net::Loop& loop() { return loop_; }
  DiskThread& disk() { return disk_; }
  const StorageHealth& storage_health() const { return health_; }
  // What became of a write to one of the files. A history that fails is tried again: its next
  // events may be long in coming (the state's records are written again anyway).
  void wrote(StorageHealth::File file, const Status& outcome);
  HeadMetrics& metrics() { return *metrics_; }
  // What goes over its connections.
  void fill_traffic(proto::HeadStats* stats) const;
  const Settings& settings() const { return options_.core.settings; }
  static Now now() { return system_now(); }
  ConnId id_of(const rpc::Connection& connection) const;
  std::shared_ptr<rpc::Connection> connection(ConnId id) const;
  void stop_requested();
  // Connects and says nothing. `done` has the error of the connection; it is dropped when this
  // ends.
  void try_address(const std::string& ip, int port, std::function<void(Status)> done);

  // HeadSink
  void persist(uint64_t id, Batch batch) override;
  void create_actor(const NodeLink& node, const proto::CreateActorRequest& request) override;
  void kill_worker(const NodeLink& node, const proto::KillWorkerRequest& request) override;
  void start_job(const NodeLink& node, const proto::StartJobProcessRequest& request) override;
  void stop_job(const NodeLink& node, const std::string& submission_id) override;
  void remove_job_log(const NodeLink& node, const std::string& submission_id) override;
  void probe(const NodeId& node, const std::string& ip, int port) override;
  void push(ConnId conn, const proto::HeadEvent& event) override;
  void close(ConnId conn, const Error& why) override;
  void set_timer(int64_t at_us) override;
  void membership_changed() override;
  void log(const std::string& text) override;

 private:
  HeadServer(net::Loop& loop, Options options);
  Status open_state();
  void greet(const std::shared_ptr<rpc::Connection>& connection);
  void gone(ConnId id);
  void first_commit(const Status& status);
  PostTask poster();
  // Calls `method` on the node; `done` also when it is not connected.
  template <class Method, class Done>
  void call_node(const NodeLink& node, Method method,
                 const typename rpc::StubMethod<Method>::RequestType& request, int64_t timeout_us,
                 Done done);

  net::Loop& loop_;
  Options options_;
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // shared with callbacks that may outlive this
  DiskThread disk_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<History> history_;
  StorageHealth health_;
  std::unique_ptr<HeadCore> core_;
  std::unique_ptr<HeadMetrics> metrics_;
  std::unique_ptr<JobLogs> job_logs_;
  std::unique_ptr<HeadRpc> rpc_;
  profile::ProfileServer profile_{loop_};
  std::map<ConnId, std::shared_ptr<rpc::Connection>> connections_;
  std::unordered_map<const rpc::Connection*, ConnId> ids_;
  ConnId last_id_ = 0;
  net::Loop::TimerId timer_ = 0, probe_timer_ = 0;
  int64_t dropped_log_pushes_ = 0;
  int listening_fd_ = -1;
  bool state_durable_ = false;
  std::function<void(Status)> started_;
  std::unique_ptr<rpc::Server>
      server_;  // last: its end closes connections, whose handlers use the rest
};

template <class Method, class Done>
void HeadServer::call_node(const NodeLink& node, Method method,
                           const typename rpc::StubMethod<Method>::RequestType& request,
                           int64_t timeout_us, Done done) {
  using Answer = Result<typename rpc::StubMethod<Method>::ReplyType>;
  auto guarded = [alive = alive_, done = std::move(done)](Answer answer) mutable {
    if (*alive) done(std::move(answer));
  };
  if (auto open = connection(node.conn))
    return rpc::call(*open, method, request, timeout_us, std::move(guarded));
  loop_.post([guarded = std::move(guarded)]() mutable {
    guarded(make_error(Code::kUnavailable, "the node is not connected"));
  });
}

}  // namespace rt::head
