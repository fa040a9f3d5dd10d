// The questions that a HeadCore answers. Asking changes nothing.
#pragma once

#include <string>

#include "daemons/head/core/actor_queries.h"
#include "daemons/head/core/consequences.h"
#include "daemons/head/core/head_parts.h"

namespace rt::head {

class HeadView {
 public:
  // All of them outlive the view.
  HeadView(const HeadParts& head, const Consequences& consequences, const std::string& dashboard)
      : head_(head), consequences_(consequences), dashboard_(dashboard) {}

  // ---- answers to clients
  proto::GetNodesReply get_nodes(const proto::GetNodesRequest& request, Now now) const;
  proto::ClusterStatusReply cluster_status(Now now) const;
  proto::GetJobsReply get_jobs() const;
  Result<proto::KvGetReply> kv_get(const proto::KvGetRequest& request) const {
    return head_.kv.get(request);
  }
  Result<proto::KvListReply> kv_list(const proto::KvListRequest& request) const {
    return head_.kv.list(request);
  }
  Result<proto::GetActorReply> get_actor(const proto::GetActorRequest& request) const {
    return head::get_actor(actors(), request);
  }
  Result<proto::ListActorsReply> list_actors(const proto::ListActorsRequest& request) const {
    return head::list_actors(actors(), request);
  }
  Result<proto::GetGroupReply> get_group(const proto::GetGroupRequest& request) const {
    return head_.groups.get(request);
  }
  proto::ListGroupsReply list_groups() const { return head_.groups.list(); }
  Result<proto::SubmittedJob> submitted_job(const std::string& submission_id) const;
  proto::SubmittedJobsReply submitted_jobs() const { return head_.submitted.list(); }

  // ---- records, which later events change
  const std::string& cluster_id() const { return head_.cluster_id; }
  int64_t incarnation() const { return head_.incarnation; }
  // The address of the HTTP interface; empty if there is none.
  const std::string& dashboard() const { return dashboard_; }
  const Cluster& cluster() const { return head_.cluster; }
  const Jobs& jobs() const { return head_.jobs; }
  const ActorDirectory& actors() const { return head_.actors.directory(); }
  const GroupDirectory& groups() const { return head_.groups.directory(); }

 private:
  const HeadParts& head_;
  const Consequences& consequences_;
  const std::string& dashboard_;
};

}  // namespace rt::head
