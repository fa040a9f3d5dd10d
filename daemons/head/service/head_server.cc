#include "daemons/head/service/head_server.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/log.h"
#include "common/base/trusted_directory.h"
#include "daemons/head/service/head_rpc.h"
#include "daemons/head/service/job_logs.h"
#include "daemons/head/storage/sqlite_history.h"
#include "daemons/head/storage/sqlite_storage.h"

namespace rt::head {
namespace {

std::string state_file(const std::string& state_dir) { return state_dir + "/head.sqlite"; }

constexpr int64_t kNodeCallTimeoutUs = 30'000'000;
// Timeout of an attempt to reach a node's TCP port. It exceeds one second, after which the kernel
// repeats a lost SYN.
constexpr int64_t kProbeTimeoutUs = 1'500'000;
// A connection is closed this much later, so that the last answer reaches its peer.
constexpr int64_t kCloseDelayUs = 20'000;

}  // namespace

HeadServer::HeadServer(net::Loop& loop, Options options)
    : loop_(loop), options_(std::move(options)) {}

HeadServer::~HeadServer() {
  *alive_ = false;
  if (driver_) driver_->stop();
  if (probe_timer_) loop_.cancel(probe_timer_);
  server_.reset();
  if (listening_fd_ >= 0) ::close(listening_fd_);
}

Result<std::unique_ptr<HeadServer>> HeadServer::open(net::Loop& loop, Options options) {
  std::unique_ptr<HeadServer> server(new HeadServer(loop, std::move(options)));
  RT_TRY(server->open_state());
  return server;
}

PostTask HeadServer::poster() {
  return [this, alive = alive_](std::function<void()> task) {
    loop_.post([alive, task = std::move(task)] {
      if (*alive) task();
    });
  };
}

Status HeadServer::open_state() {
  const std::string& dir = options_.state_dir;
  RT_TRY(claim_directory(dir, {"the head's state", "give another --state-dir"}));
  RT_ASSIGN(storage_, SqliteStorage::open(state_file(dir), disk_, poster()));
  RT_ASSIGN(history_,
            SqliteHistory::open(dir + "/history.sqlite", options_.core.settings, disk_, poster()));
  RT_ASSIGN(Tables tables, storage_->load());
  driver_ = std::make_unique<net::CoreDriver<HeadCore>>(loop_, options_.core, *this);
  if (Status loaded = drive([&](HeadCore& core, Now now) { return core.load(tables, now); });
      !loaded)
    return make_error(loaded.error().code,
                      fmt::format("{}: {}. Move the file away to start with an empty cluster, or "
                                  "put a copy back",
                                  state_file(dir), loaded.error().message));
  metrics_ = std::make_unique<HeadMetrics>(*this, options_.session_dir, !options_.private_cluster);
  job_logs_ = std::make_unique<JobLogs>(*this);
  rpc_ = std::make_unique<HeadRpc>(*this, *job_logs_);
  return {};
}

void HeadServer::start(int listening_fd, std::function<void(Status)> done) {
  listening_fd_ = listening_fd;
  rpc::ServerOptions server;
  server.identity.role = "head";
  server.identity.cluster_id = core().view().cluster_id();
  server.identity.token = options_.token;
  server.hello_timeout_us = settings().hello_timeout_ms * 1000;
  server.max_connections = static_cast<int>(settings().max_connections);
  server.on_connection = [this](const std::shared_ptr<rpc::Connection>& connection) {
    greet(connection);
  };
  server_ = std::make_unique<rpc::Server>(loop_, std::move(server));
  started_ = std::move(done);
  if (state_durable_) first_commit({});
}

// Starts to listen: no peer may hear of this incarnation before it is on disk.
void HeadServer::first_commit(const Status& status) {
  state_durable_ = status.has_value();
  if (!started_) return;
  auto done = std::move(started_);
  started_ = nullptr;
  if (!status) return done(status);
  done(server_->listen_fd(std::exchange(listening_fd_, -1)));
}

void HeadServer::greet(const std::shared_ptr<rpc::Connection>& connection) {
  const ConnId id = connections_.add(connection);
  connection->add_service(rpc_.get());
  connection->add_service(metrics_.get());
  connection->add_service(&profile_);
  // The event is posted, because a connection may break while the core is making a decision.
  connection->set_closed_handler([this, id, alive = alive_](const Error&) {
    loop_.post([this, id, alive] {
      if (*alive) connection_closed(id);
    });
  });
}

void HeadServer::connection_closed(ConnId id) {
  if (connections_.remove(id))
    drive([&](HeadCore& core, Now now) { core.connection_closed(id, now); });
}

void HeadServer::close(ConnId conn, const Error& why) {
  auto open = connections_.find(conn);
  if (!open) return;
  loop_.run_after(kCloseDelayUs, [open, why] { open->close(why); });
}

void HeadServer::push(ConnId conn, const proto::HeadEvent& event) {
  auto open = connections_.find(conn);
  if (!open) return;
  auto queued = static_cast<int64_t>(open->queued_bytes());
  int64_t bound = settings().subscriber_max_queued_bytes;
  if (queued > 2 * bound) {
    RT_WARN("{} reads its events too slowly ({} bytes queued): the connection is closed",
            open->peer().name, queued);
    return close(conn, make_error(Code::kResourceExhausted, "events are not read fast enough"));
  }
  if (queued > bound && event.logs_size() > 0) {
    if (dropped_log_pushes_++ % 1000 == 0)
      RT_WARN("{} reads too slowly: log lines are dropped ({} times so far)", open->peer().name,
              dropped_log_pushes_);
    return;
  }
  rpc::notify(*open, &proto::HeadClientService::Stub::OnHeadEvent, event);
}

void HeadServer::stop_requested() {
  loop_.run_after(kCloseDelayUs, [this, alive = alive_] {
    if (*alive && options_.on_stop) options_.on_stop();
  });
}

void HeadServer::persist(uint64_t id, Batch batch) {
  storage_->apply(std::move(batch), [this, id](Status status) {
    wrote(StorageHealth::File::kState, status);
    drive([&](HeadCore& core, Now now) { core.persisted(id, status, now); });
    if (!state_durable_) first_commit(status);
  });
}

std::string HeadServer::storage_failure() const {
  const std::string file = state_file(options_.state_dir);
  if (std::string failure = health_.failure(); !failure.empty()) return failure;
  if (access(file.c_str(), F_OK) == 0 || errno != ENOENT) return "";
  return fmt::format(
      "storage is failing: {} was removed while the head ran, so a restarted head would know "
      "nothing of this cluster, and programs of this machine may not find it. Save the results, "
      "then stop the cluster with `rayctl stop` and start it again; keep cleaners of temporary "
      "files away from its directory",
      file);
}

void HeadServer::wrote(StorageHealth::File file, const Status& outcome) {
  if (health_.wrote(file, outcome)) {
    if (std::string failure = health_.failure(); failure.empty()) {
      RT_INFO("the head's storage works again");
    } else {
      RT_ERROR("{}", failure);
    }
  }
  if (!health_.failing(StorageHealth::File::kHistory) || probe_timer_) return;
  probe_timer_ = loop_.run_after(settings().storage_retry_ms * 1000, [this] {
    probe_timer_ = 0;
    history_->probe([this](const Status& probed) { wrote(StorageHealth::File::kHistory, probed); });
  });
}

void HeadServer::create_actor(const NodeLink& node, const proto::CreateActorRequest& request) {
  ActorId actor = ActorId::from_binary(request.spec().actor_id());
  // The call has no timeout: a constructor may take any time, and a broken connection ends the
  // call.
  call_node(node, &proto::NodeManagerService::Stub::CreateActor, request, -1,
            [this, id = node.node, actor,
             epoch = request.epoch()](Result<proto::CreateActorReply> reply) {
              drive([&](HeadCore& core, Now now) {
                core.create_actor_answered(id, actor, epoch, reply, now);
              });
            });
}

void HeadServer::kill_worker(const NodeLink& node, const proto::KillWorkerRequest& request) {
  call_node(node, &proto::NodeManagerService::Stub::KillWorker, request, kNodeCallTimeoutUs,
            [](Result<proto::Empty>) {});
}

void HeadServer::prepare_bundles(const NodeLink& node,
                                 const proto::PrepareBundlesRequest& request) {
  GroupId group = GroupId::from_binary(request.group_id());
  // The call has no timeout: the node answers in time, and a broken connection ends the call.
  call_node(node, &proto::NodeManagerService::Stub::PrepareBundles, request, -1,
            [this, id = node.node, group,
             epoch = request.epoch()](const Result<proto::PrepareBundlesReply>& reply) {
              drive([&](HeadCore& core, Now now) {
                core.prepare_bundles_answered(id, group, epoch, reply, now);
              });
            });
}

void HeadServer::return_bundles(const NodeLink& node, const proto::ReturnBundlesRequest& request) {
  call_node(node, &proto::NodeManagerService::Stub::ReturnBundles, request, kNodeCallTimeoutUs,
            [](Result<proto::Empty>) {});
}

void HeadServer::start_job(const NodeLink& node, const proto::StartJobProcessRequest& request) {
  call_node(node, &proto::NodeManagerService::Stub::StartJobProcess, request, kNodeCallTimeoutUs,
            [this, id = node.node,
             submission = request.job().submission_id()](Result<proto::Empty> reply) {
              Status status;
              if (!reply) status = reply.error();
              drive([&](HeadCore& core, Now now) {
                core.start_job_answered(submission, id, status, now);
              });
            });
}

void HeadServer::stop_job(const NodeLink& node, const std::string& submission_id) {
  proto::SubmittedJobRequest request;
  request.set_submission_id(submission_id);
  call_node(
      node, &proto::NodeManagerService::Stub::StopJobProcess, request, kNodeCallTimeoutUs,
      [this, submission_id](Result<proto::StopJobReply> reply) {
        drive([&](HeadCore& core, Now now) { core.stop_job_answered(submission_id, reply, now); });
      });
}

void HeadServer::remove_job_log(const NodeLink& node, const std::string& submission_id) {
  proto::SubmittedJobRequest request;
  request.set_submission_id(submission_id);
  call_node(node, &proto::NodeManagerService::Stub::RemoveJobLog, request, kNodeCallTimeoutUs,
            [](Result<proto::Empty>) {});
}

void HeadServer::probe(const NodeId& node, const std::string& ip, int port) {
  try_address(ip, port, [this, node](const Status& answer) {
    drive([&](HeadCore& core, Now now) { core.probe_answered(node, answer, now); });
  });
}

void HeadServer::try_address(const std::string& ip, int port, std::function<void(Status)> done) {
  loop_.connect(
      net::Address::tcp(ip, port), kProbeTimeoutUs,
      [alive = alive_, done = std::move(done)](Result<std::unique_ptr<net::Stream>> stream) {
        if (!*alive) return;
        Status answer;
        if (!stream) answer = stream.error();
        done(answer);
      });
}

void HeadServer::membership_changed() {
  if (metrics_) metrics_->membership_changed();
}

void HeadServer::fill_traffic(proto::HeadStats* stats) const {
  stats->set_connections(static_cast<int>(connections_.size()));
  stats->set_queued_bytes(static_cast<int64_t>(connections_.queued_bytes()));
}

void HeadServer::log(const std::string& text) { RT_INFO("{}", text); }

}  // namespace rt::head
