#include "daemons/head/service/head_rpc.h"

#include <fmt/core.h>

#include "common/base/log.h"
#include "daemons/head/service/head_server.h"
#include "daemons/head/service/job_logs.h"
#include "daemons/head/service/log_flush.h"

namespace rt::head {
namespace {

// Makes the continuation that ends a call. `call` and `reply` are valid until `done` runs.
template <class T>
Reply<T> answer(google::protobuf::RpcController* call, T* reply, google::protobuf::Closure* done) {
  return [call, reply, done](Result<T> result) {
    if (result) {
      *reply = std::move(*result);
    } else {
      rpc::server_call(call).fail(std::move(result).error());
    }
    done->Run();
  };
}

void answer(google::protobuf::RpcController* call, google::protobuf::Closure* done,
            const Status& status) {
  if (!status) rpc::server_call(call).fail(status.error());
  done->Run();
}

// Makes the error for a node that the head cannot reach. Such a node is refused, because it would
// be given work that never arrives.
Error unreachable(const std::string& ip, int port, const Error& why) {
  return make_error(
      Code::kInvalid,
      fmt::format("the head's machine cannot reach it at {} ({}): give --node-ip-address "
                  "(ray-node-manager: --node-ip) an address others reach it by, "
                  "and let its port through (--node-manager-port or --port fixes which)",
                  net::Address::tcp(ip, port).to_string(), why.message));
}

}  // namespace

// Shorthands for the signature of a method, an event of the core, the core's view, the caller's
// connection and the time of a question.
#define METHOD(name, Request, Answer)                                \
  void HeadRpc::name([[maybe_unused]] Controller* call,              \
                     [[maybe_unused]] const proto::Request* request, \
                     [[maybe_unused]] proto::Answer* reply, [[maybe_unused]] Closure* done)
#define EVENT(call) \
  server_.drive([&](HeadCore& core, [[maybe_unused]] Now now) { return core.call; })
#define VIEW server_.core().view()
#define CONN server_.connections().id_of(*rpc::server_call(call).connection())
#define NOW system_now()

METHOD(RegisterNode, RegisterNodeRequest, RegisterNodeReply) {
  ConnId conn = CONN;
  std::string ip = request->node().ip(), id = to_hex(request->node().node_id());
  int port = request->node().port();
  auto deliver = [deliver = answer(call, reply, done), ip,
                  id](Result<proto::RegisterNodeReply> result) {
    if (result) {
      RT_INFO("node {} ({}) registered", ip, id);
    } else {
      RT_WARN("node {} ({}) refused: {}", ip, id, result.error().message);
    }
    deliver(std::move(result));
  };
  // A node that comes back was reachable before, and its network may be recovering, so it is not
  // tested again.
  bool known = NodeId::is_valid(request->node().node_id()) &&
               VIEW.cluster().find(NodeId::from_binary(request->node().node_id()));
  if (known || ip.empty() || port <= 0 || port > 65535)
    return EVENT(register_node(conn, *request, now, deliver));
  server_.try_address(ip, port, [this, conn, request, ip, port, deliver](const Status& reached) {
    if (!server_.connections().find(conn))
      return deliver(make_error(Code::kUnavailable, "the connection that registered broke"));
    if (!reached) return deliver(unreachable(ip, port, reached.error()));
    EVENT(register_node(conn, *request, now, deliver));
  });
}
METHOD(ReportResources, ResourceReport, Empty) {
  answer(call, done, EVENT(report_resources(CONN, *request, now)));
}
METHOD(UnregisterNode, UnregisterNodeRequest, Empty) {
  answer(call, done, EVENT(unregister_node(CONN, *request, now)));
}
METHOD(GetNodes, GetNodesRequest, GetNodesReply) {
  *reply = VIEW.get_nodes(*request, NOW);
  done->Run();
}
METHOD(GetClusterStatus, Empty, ClusterStatusReply) {
  *reply = VIEW.cluster_status(NOW);
  reply->set_storage_failure(server_.storage_failure());
  done->Run();
}
METHOD(GetSnapshot, GetSnapshotRequest, GetSnapshotReply) {
  if (request->has_actors()) {
    auto actors = VIEW.list_actors(request->actors());
    if (!actors) return answer(call, done, actors.error());
    *reply->mutable_actors() = *std::move(actors);
  }
  if (request->status()) {
    *reply->mutable_status() = VIEW.cluster_status(NOW);
    reply->mutable_status()->set_storage_failure(server_.storage_failure());
  }
  if (request->has_nodes()) *reply->mutable_nodes() = VIEW.get_nodes(request->nodes(), NOW);
  if (request->jobs()) {
    *reply->mutable_drivers() = VIEW.get_jobs();
    *reply->mutable_submitted_jobs() = VIEW.submitted_jobs();
  }
  if (request->groups()) *reply->mutable_groups() = VIEW.list_groups();
  done->Run();
}
METHOD(GetHealth, Empty, HealthReply) {
  reply->set_storage_failure(server_.storage_failure());
  for (const auto& [id, node] : VIEW.cluster().nodes()) {
    if (node.alive() && node.info.is_head())
      reply->set_node_problem(VIEW.cluster().shown(node, NOW).problem());
  }
  done->Run();
}

METHOD(AddJob, AddJobRequest, AddJobReply) {
  EVENT(add_job(*request, now, answer(call, reply, done)));
}
METHOD(FinishJob, FinishJobRequest, Empty) { answer(call, done, EVENT(finish_job(*request, now))); }
METHOD(GetJobs, Empty, GetJobsReply) {
  *reply = VIEW.get_jobs();
  done->Run();
}

METHOD(KvPut, KvPutRequest, KvPutReply) { EVENT(kv_put(*request, now, answer(call, reply, done))); }
METHOD(KvGet, KvGetRequest, KvGetReply) { answer(call, reply, done)(VIEW.kv_get(*request)); }
METHOD(KvDelete, KvGetRequest, KvPutReply) {
  EVENT(kv_delete(*request, now, answer(call, reply, done)));
}
METHOD(KvList, KvListRequest, KvListReply) { answer(call, reply, done)(VIEW.kv_list(*request)); }

METHOD(RegisterActor, RegisterActorRequest, RegisterActorReply) {
  EVENT(register_actor(*request, now, answer(call, reply, done)));
}
METHOD(GetActor, GetActorRequest, GetActorReply) {
  answer(call, reply, done)(VIEW.get_actor(*request));
}
METHOD(KillActor, KillActorRequest, Empty) {
  EVENT(kill_actor(*request, now, answer(call, reply, done)));
}
METHOD(ListActors, ListActorsRequest, ListActorsReply) {
  answer(call, reply, done)(VIEW.list_actors(*request));
}
METHOD(RegisterGroup, RegisterGroupRequest, Empty) {
  EVENT(register_group(CONN, *request, now, answer(call, reply, done)));
}
METHOD(RemoveGroup, GroupRequest, Empty) {
  EVENT(remove_group(CONN, *request, now, answer(call, reply, done)));
}
METHOD(GetGroup, GetGroupRequest, GetGroupReply) {
  answer(call, reply, done)(VIEW.get_group(*request));
}
METHOD(ListGroups, Empty, ListGroupsReply) {
  *reply = VIEW.list_groups();
  done->Run();
}
METHOD(ReportActorStarted, ActorStarted, Empty) {
  answer(call, done, EVENT(actor_started(CONN, *request, now)));
}
METHOD(ReportActorDied, ActorDied, Empty) {
  answer(call, done, EVENT(actor_died(CONN, *request, now)));
}
METHOD(ReportDeadWorkers, DeadWorkers, Empty) {
  answer(call, done, EVENT(dead_workers(CONN, *request, now)));
}

METHOD(Subscribe, SubscribeRequest, Empty) {
  answer(call, done, EVENT(subscribe(CONN, *request, now)));
}
METHOD(PublishLogs, HeadEvent, Empty) { answer(call, done, EVENT(publish_logs(CONN, *request))); }
METHOD(FlushLogs, FlushLogsRequest, Empty) {
  flush_logs(server_, *request, answer(call, reply, done));
}

METHOD(SubmitJob, SubmitJobRequest, SubmitJobReply) {
  EVENT(submit_job(*request, now, answer(call, reply, done)));
}
METHOD(GetSubmittedJob, SubmittedJobRequest, SubmittedJobsReply) {
  auto job = VIEW.submitted_job(request->submission_id());
  if (job) *reply->add_jobs() = std::move(*job);
  answer(call, done, job ? Status() : Status(job.error()));
}
METHOD(ListSubmittedJobs, Empty, SubmittedJobsReply) {
  *reply = VIEW.submitted_jobs();
  done->Run();
}
METHOD(DeleteSubmittedJob, SubmittedJobRequest, Empty) {
  EVENT(delete_submitted_job(request->submission_id(), now, answer(call, reply, done)));
}
METHOD(StopSubmittedJob, SubmittedJobRequest, StopJobReply) {
  EVENT(stop_submitted_job(request->submission_id(), now, answer(call, reply, done)));
}
METHOD(GetJobLogs, JobLogsRequest, JobLogsReply) {
  job_logs_.read(*request, rpc::server_call(call).connection(), answer(call, reply, done));
}
METHOD(ReportSubmittedJob, SubmittedJob, Empty) {
  EVENT(report_submitted_job(CONN, *request, now, answer(call, reply, done)));
}

METHOD(AddTaskEvents, TaskEventBatch, Empty) {
  if (request->count() < 0 || request->dropped() < 0 ||
      !(request->job_id().empty() || JobId::is_valid(request->job_id())))
    return answer(
        call, done,
        make_error(Code::kInvalid,
                   "task events: a count is negative, or the job id does not have 4 bytes"));
  std::string source = request->row() > 0 ? rpc::server_call(call).connection()->peer().id : "";
  server_.history().append(
      *request, source,
      [this, request, deliver = answer(call, reply, done)](Result<History::Outcome> outcome) {
        server_.metrics().count(*request, outcome);
        // A batch that found no room in the queue was not written, so it says nothing about the
        // file.
        if (Status written = outcome ? Status() : Status(outcome.error());
            written || written.error().code != Code::kResourceExhausted)
          server_.wrote(StorageHealth::File::kHistory, written);
        deliver(outcome ? Result<proto::Empty>(proto::Empty())
                        : Result<proto::Empty>(std::move(outcome).error()));
      });
}
METHOD(GetTaskEvents, GetTaskEventsRequest, GetTaskEventsReply) {
  server_.history().query(*request, answer(call, reply, done));
}

METHOD(Stop, Empty, Empty) {
  RT_INFO("stop requested by {}", rpc::server_call(call).connection()->peer().name);
  done->Run();
  server_.stop_requested();
}

#undef METHOD
#undef EVENT
#undef VIEW
#undef CONN
#undef NOW

}  // namespace rt::head
