// Implements NodeManagerService: unpacks requests and hands them to the classes that a node-manager
// consists of. Threads: the loop's.
#pragma once

#include <string>
#include <utility>

#include "common/proto/node_manager.pb.h"
#include "daemons/node_manager/service/admission.h"
#include "daemons/node_manager/service/core_driver.h"
#include "daemons/node_manager/service/event_relay.h"
#include "daemons/node_manager/service/figures.h"
#include "daemons/node_manager/service/load_reports.h"
#include "daemons/node_manager/service/processes.h"
#include "daemons/node_manager/service/requests.h"
#include "daemons/node_manager/service/sessions.h"
#include "daemons/node_manager/service/shutdown.h"
#include "daemons/node_manager/service/store_link.h"

namespace rt::node {

class NodeRpc final : public proto::NodeManagerService {
 public:
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;
  // All of them are used while the loop runs.
  struct Parts {
    CoreDriver& driver;
    Sessions& sessions;
    Admission& admission;
    Requests& requests;
    Processes& processes;
    LoadReports& reports;
    Figures& figures;
    EventRelay& events;
    StoreLink* store;  // null: a node without a store
    Shutdown& shutdown;
    std::string log_directory;
  };
  explicit NodeRpc(Parts node) : node_(std::move(node)) {}

  void WorkerSetupFailed(Controller*, const proto::WorkerSetupFailure*, proto::Empty*,
                         Closure*) override;
  void RegisterWorker(Controller*, const proto::RegisterWorkerRequest*, proto::RegisterWorkerReply*,
                      Closure*) override;
  void SetLeaseDemand(Controller*, const proto::LeaseDemand*, proto::Empty*, Closure*) override;
  void ReturnLease(Controller*, const proto::LeaseReturn*, proto::Empty*, Closure*) override;
  void Leaving(Controller*, const proto::Empty*, proto::Empty*, Closure*) override;
  void SetBlocked(Controller*, const proto::Blocked*, proto::Empty*, Closure*) override;
  void SetWaiting(Controller*, const proto::WaitingTasks*, proto::Empty*, Closure*) override;
  void GetWorkerExit(Controller*, const proto::WorkerExitRequest*, proto::WorkerExitReply*,
                     Closure*) override;
  void CreateActor(Controller*, const proto::CreateActorRequest*, proto::CreateActorReply*,
                   Closure*) override;
  void KillWorker(Controller*, const proto::KillWorkerRequest*, proto::Empty*, Closure*) override;
  void PrepareBundles(Controller*, const proto::PrepareBundlesRequest*, proto::PrepareBundlesReply*,
                      Closure*) override;
  void ReturnBundles(Controller*, const proto::ReturnBundlesRequest*, proto::Empty*,
                     Closure*) override;
  void StartJobProcess(Controller*, const proto::StartJobProcessRequest*, proto::Empty*,
                       Closure*) override;
  void StopJobProcess(Controller*, const proto::SubmittedJobRequest*, proto::StopJobReply*,
                      Closure*) override;
  void ReadJobLog(Controller*, const proto::ReadJobLogRequest*, proto::ReadJobLogReply*,
                  Closure*) override;
  void RemoveJobLog(Controller*, const proto::SubmittedJobRequest*, proto::Empty*,
                    Closure*) override;
  void AddTaskEvents(Controller*, const proto::TaskEventBatch*, proto::Empty*, Closure*) override;
  void GetStats(Controller*, const proto::Empty*, proto::NodeStats*, Closure*) override;
  void RecordMetrics(Controller*, const proto::MetricsReport*, proto::Empty*, Closure*) override;
  void GetMetrics(Controller*, const proto::Empty*, proto::MetricsReply*, Closure*) override;
  void FlushLogs(Controller*, const proto::FlushLogsRequest*, proto::Empty*, Closure*) override;
  void ListLogFiles(Controller*, const proto::ListLogFilesRequest*, proto::LogFilesReply*,
                    Closure*) override;
  void ReadLogFile(Controller*, const proto::ReadLogFileRequest*, proto::ReadLogFileReply*,
                   Closure*) override;
  void GetHostStats(Controller*, const proto::Empty*, proto::HostStats*, Closure*) override;
  void ListProcesses(Controller*, const proto::Empty*, proto::ProcessesReply*, Closure*) override;
  void ListRuntimeEnvs(Controller*, const proto::Empty*, proto::RuntimeEnvsReply*,
                       Closure*) override;
  void Drain(Controller*, const proto::DrainRequest*, proto::DrainReply*, Closure*) override;
  void Stop(Controller*, const proto::Empty*, proto::Empty*, Closure*) override;

 private:
  // Null once the connection of the call has closed.
  Session* session_of(Controller* controller);

  const Parts node_;
};

}  // namespace rt::node
