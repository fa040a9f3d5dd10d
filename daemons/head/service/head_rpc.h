// Implements proto::HeadService: each call becomes one event of the core, and each answer its
// result. Loop thread only.
#pragma once

#include "common/proto/head.pb.h"
#include "common/rpc/connection.h"

namespace rt::head {

class HeadServer;
class JobLogs;

class HeadRpc final : public proto::HeadService {
 public:
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;

  // Both arguments must outlive this object.
  HeadRpc(HeadServer& server, JobLogs& job_logs) : server_(server), job_logs_(job_logs) {}

#define HEAD_RPC(method, Request, Answer)                                            \
  void method(Controller* call, const proto::Request* request, proto::Answer* reply, \
              Closure* done) override;
  HEAD_RPC(RegisterNode, RegisterNodeRequest, RegisterNodeReply)
  HEAD_RPC(ReportResources, ResourceReport, Empty)
  HEAD_RPC(UnregisterNode, UnregisterNodeRequest, Empty)
  HEAD_RPC(GetNodes, GetNodesRequest, GetNodesReply)
  HEAD_RPC(GetClusterStatus, Empty, ClusterStatusReply)
  HEAD_RPC(GetHealth, Empty, HealthReply)
  HEAD_RPC(GetSnapshot, GetSnapshotRequest, GetSnapshotReply)
  HEAD_RPC(AddJob, AddJobRequest, AddJobReply)
  HEAD_RPC(FinishJob, FinishJobRequest, Empty)
  HEAD_RPC(GetJobs, Empty, GetJobsReply)
  HEAD_RPC(KvPut, KvPutRequest, KvPutReply)
  HEAD_RPC(KvGet, KvGetRequest, KvGetReply)
  HEAD_RPC(KvDelete, KvGetRequest, KvPutReply)
  HEAD_RPC(KvList, KvListRequest, KvListReply)
  HEAD_RPC(RegisterActor, RegisterActorRequest, RegisterActorReply)
  HEAD_RPC(GetActor, GetActorRequest, GetActorReply)
  HEAD_RPC(KillActor, KillActorRequest, Empty)
  HEAD_RPC(ListActors, ListActorsRequest, ListActorsReply)
  HEAD_RPC(RegisterGroup, RegisterGroupRequest, Empty)
  HEAD_RPC(RemoveGroup, GroupRequest, Empty)
  HEAD_RPC(GetGroup, GetGroupRequest, GetGroupReply)
  HEAD_RPC(ListGroups, Empty, ListGroupsReply)
  HEAD_RPC(ReportActorStarted, ActorStarted, Empty)
  HEAD_RPC(ReportActorDied, ActorDied, Empty)
  HEAD_RPC(ReportDeadWorkers, DeadWorkers, Empty)
  HEAD_RPC(Subscribe, SubscribeRequest, Empty)
  HEAD_RPC(PublishLogs, HeadEvent, Empty)
  HEAD_RPC(FlushLogs, FlushLogsRequest, Empty)
  HEAD_RPC(SubmitJob, SubmitJobRequest, SubmitJobReply)
  HEAD_RPC(GetSubmittedJob, SubmittedJobRequest, SubmittedJobsReply)
  HEAD_RPC(ListSubmittedJobs, Empty, SubmittedJobsReply)
  HEAD_RPC(StopSubmittedJob, SubmittedJobRequest, StopJobReply)
  HEAD_RPC(DeleteSubmittedJob, SubmittedJobRequest, Empty)
  HEAD_RPC(GetJobLogs, JobLogsRequest, JobLogsReply)
  HEAD_RPC(ReportSubmittedJob, SubmittedJob, Empty)
  HEAD_RPC(AddTaskEvents, TaskEventBatch, Empty)
  HEAD_RPC(GetTaskEvents, GetTaskEventsRequest, GetTaskEventsReply)
  HEAD_RPC(Stop, Empty, Empty)
#undef HEAD_RPC

 private:
  HeadServer& server_;
  JobLogs& job_logs_;
};

}  // namespace rt::head
