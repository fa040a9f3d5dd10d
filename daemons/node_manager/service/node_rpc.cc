#include "daemons/node_manager/service/node_rpc.h"

#include <unistd.h>

#include "common/rpc/connection.h"
#include "daemons/node_manager/process/host_stats.h"
#include "daemons/node_manager/process/log_files.h"

namespace rt::node {
namespace {

template <class Reply>
void answer(google::protobuf::RpcController* controller, Result<Reply> result, Reply* reply,
            google::protobuf::Closure* done) {
  if (result) {
    *reply = std::move(*result);
  } else {
    rpc::server_call(controller).fail(std::move(result).error());
  }
  done->Run();
}

}  // namespace

Session* NodeRpc::session_of(Controller* controller) {
  return node_.sessions.find(*rpc::server_call(controller).connection());
}

void NodeRpc::RegisterWorker(Controller* controller, const proto::RegisterWorkerRequest* request,
                             proto::RegisterWorkerReply* reply, Closure* done) {
  node_.admission.ask(rpc::server_call(controller), *request, reply, done);
}

void NodeRpc::WorkerSetupFailed(Controller* controller, const proto::WorkerSetupFailure* request,
                                proto::Empty*, Closure* done) {
  node_.requests.setup_failed(*rpc::server_call(controller).connection(), *request);
  done->Run();
}

void NodeRpc::SetLeaseDemand(Controller* controller, const proto::LeaseDemand* request,
                             proto::Empty*, Closure* done) {
  node_.requests.set_demand(*rpc::server_call(controller).connection(), *request);
  done->Run();
}

void NodeRpc::ReturnLease(Controller* controller, const proto::LeaseReturn* request, proto::Empty*,
                          Closure* done) {
  node_.requests.return_lease(*rpc::server_call(controller).connection(), *request);
  done->Run();
}

void NodeRpc::SetBlocked(Controller* controller, const proto::Blocked* request, proto::Empty*,
                         Closure* done) {
  node_.requests.said_by(*rpc::server_call(controller).connection(),
                         [&](NodeCore& core, const WorkerId& worker, Now now) {
                           core.set_blocked(worker, request->blocked(), now);
                         });
  done->Run();
}

void NodeRpc::Leaving(Controller* controller, const proto::Empty*, proto::Empty*, Closure* done) {
  node_.requests.said_by(*rpc::server_call(controller).connection(),
                         [](NodeCore& core, const WorkerId& worker, Now now) {
                           core.worker_leaves(worker, NodeCore::Leaving::kWorkIsDone, now);
                         });
  done->Run();
}

void NodeRpc::SetWaiting(Controller* controller, const proto::WaitingTasks* request, proto::Empty*,
                         Closure* done) {
  Session* session = session_of(controller);
  if (session && !session->worker.is_nil()) {
    session->waiting = *request;
    node_.reports.changed();
  }
  done->Run();
}

void NodeRpc::GetWorkerExit(Controller*, const proto::WorkerExitRequest* request,
                            proto::WorkerExitReply* reply, Closure* done) {
  node_.requests.await_exit(WorkerId::from_binary(request->worker_id()), reply, done);
}

void NodeRpc::CreateActor(Controller* controller, const proto::CreateActorRequest* request,
                          proto::CreateActorReply* reply, Closure* done) {
  node_.requests.create_actor(*rpc::server_call(controller).connection(), *request, reply, done);
}

void NodeRpc::KillWorker(Controller*, const proto::KillWorkerRequest* request, proto::Empty*,
                         Closure* done) {
  node_.driver.drive([&](NodeCore& core, Now now) { core.kill(*request, now); });
  done->Run();
}

void NodeRpc::PrepareBundles(Controller*, const proto::PrepareBundlesRequest* request,
                             proto::PrepareBundlesReply* reply, Closure* done) {
  node_.requests.prepare_bundles(*request, reply, done);
}

void NodeRpc::ReturnBundles(Controller*, const proto::ReturnBundlesRequest* request, proto::Empty*,
                            Closure* done) {
  node_.driver.drive([&](NodeCore& core, Now now) { core.return_bundles(*request, now); });
  done->Run();
}

void NodeRpc::StartJobProcess(Controller* controller, const proto::StartJobProcessRequest* request,
                              proto::Empty*, Closure* done) {
  std::map<std::string, std::string> env(request->env().begin(), request->env().end());
  Status started = node_.shutdown.has_begun()
                       ? make_error(Code::kUnavailable, "the node is leaving the cluster")
                       : node_.processes.start_job(request->job(), env);
  if (!started) rpc::server_call(controller).fail(started.error());
  done->Run();
}

void NodeRpc::StopJobProcess(Controller*, const proto::SubmittedJobRequest* request,
                             proto::StopJobReply* reply, Closure* done) {
  reply->set_stopped(node_.processes.jobs().stop(request->submission_id()));
  done->Run();
}

void NodeRpc::ReadJobLog(Controller* controller, const proto::ReadJobLogRequest* request,
                         proto::ReadJobLogReply* reply, Closure* done) {
  auto chunk = node_.processes.jobs().read_log(request->submission_id(), request->offset(),
                                               request->max_bytes());
  if (chunk) {
    reply->set_data(std::move(chunk->data));
    reply->set_next_offset(chunk->next_offset);
    reply->set_size(chunk->size);
  } else {
    rpc::server_call(controller).fail(chunk.error());
  }
  done->Run();
}

void NodeRpc::RemoveJobLog(Controller*, const proto::SubmittedJobRequest* request, proto::Empty*,
                           Closure* done) {
  node_.processes.jobs().remove_log(request->submission_id());
  done->Run();
}

void NodeRpc::AddTaskEvents(Controller* controller, const proto::TaskEventBatch* request,
                            proto::Empty*, Closure* done) {
  if (Session* session = session_of(controller))
    session->events_received += request->count() + request->dropped();
  node_.events.add(*request);
  done->Run();
}

void NodeRpc::GetStats(Controller*, const proto::Empty*, proto::NodeStats* reply, Closure* done) {
  node_.figures.fill_stats(reply, done);
}

void NodeRpc::RecordMetrics(Controller* controller, const proto::MetricsReport* request,
                            proto::Empty*, Closure* done) {
  const Session* session = session_of(controller);
  if (session && !session->worker.is_nil()) node_.figures.record(session->worker, *request);
  done->Run();
}

void NodeRpc::GetMetrics(Controller*, const proto::Empty*, proto::MetricsReply* reply,
                         Closure* done) {
  node_.figures.programs().fill(reply);
  done->Run();
}

void NodeRpc::FlushLogs(Controller*, const proto::FlushLogsRequest* request, proto::Empty*,
                        Closure* done) {
  node_.processes.logs().flush(request->job_id(), [done] { done->Run(); });
}

void NodeRpc::ListLogFiles(Controller* controller, const proto::ListLogFilesRequest* request,
                           proto::LogFilesReply* reply, Closure* done) {
  answer(controller, list_log_files(node_.log_directory, request->glob()), reply, done);
}

void NodeRpc::ReadLogFile(Controller* controller, const proto::ReadLogFileRequest* request,
                          proto::ReadLogFileReply* reply, Closure* done) {
  // A submitted job's log is read across its rotated pieces, under the name of the newest.
  const RotatedLog* log = node_.processes.jobs().log_of_file(request->name());
  answer(controller,
         log ? read_rotated_log(*log, *request) : read_log_file(node_.log_directory, *request),
         reply, done);
}

void NodeRpc::GetHostStats(Controller*, const proto::Empty*, proto::HostStats* reply,
                           Closure* done) {
  proto::ProcessesReply known;
  node_.driver.core().view().workers().fill_processes(&known);
  std::vector<int> pids = {::getpid()};
  for (const auto& process : known.processes()) {
    if (process.alive() && process.pid() > 0) pids.push_back(process.pid());
  }
  *reply = host_stats(pids, node_.log_directory);
  done->Run();
}

void NodeRpc::ListProcesses(Controller*, const proto::Empty*, proto::ProcessesReply* reply,
                            Closure* done) {
  node_.driver.core().view().workers().fill_processes(reply);
  done->Run();
}

void NodeRpc::ListRuntimeEnvs(Controller*, const proto::Empty*, proto::RuntimeEnvsReply* reply,
                              Closure* done) {
  node_.driver.core().view().workers().fill_runtime_envs(reply);
  done->Run();
}

void NodeRpc::Drain(Controller* controller, const proto::DrainRequest* request,
                    proto::DrainReply* reply, Closure* done) {
  answer(controller, node_.shutdown.drain(*request, node_.store ? node_.store->used() : 0), reply,
         done);
}

void NodeRpc::Stop(Controller*, const proto::Empty*, proto::Empty*, Closure* done) {
  done->Run();
  node_.shutdown.stop(
      StopReason{proto::EXPECTED_TERMINATION, "stopped by request", Code::kOk, kGentleStopUs});
}

}  // namespace rt::node
