// Implements NodeManagerService: unpacks requests and hands them to NodeManager or to the classes
// it consists of. Threads: the loop's.
#pragma once

#include "common/proto/node_manager.pb.h"

namespace rt::node {

class NodeManager;
struct Session;

class NodeRpc final : public proto::NodeManagerService {
 public:
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;
  explicit NodeRpc(NodeManager& node) : node_(node) {}

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

  NodeManager& node_;
};

}  // namespace rt::node
