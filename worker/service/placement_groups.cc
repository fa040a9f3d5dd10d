// The calls of bindings about placement groups.
#include "worker/placement_groups.h"

#include <fmt/core.h>

#include "worker/service/impl.h"

namespace rt::worker {

namespace {

Result<proto::GroupInfo> found_group(HeadQuestions& head, const proto::GetGroupRequest& request,
                                     const std::string& what) {
  auto reply = head.ask(&proto::HeadService::Stub::GetGroup, request);
  if (!reply) return reply.error();
  if (!reply->found()) return make_error(Code::kNotFound, what + " does not exist");
  return std::move(*reply->mutable_group());
}

}  // namespace

Result<GroupId> create_group(Worker& worker, proto::GroupSpec spec) {
  Worker::Impl& impl = worker.impl();
  WorkerLock lock(impl.shared.mutex);
  return impl.groups.create(lock, std::move(spec));
}

Status remove_group(Worker& worker, const GroupId& id) {
  Worker::Impl& impl = worker.impl();
  WorkerLock lock(impl.shared.mutex);
  return impl.groups.remove(lock, id);
}

Waited wait_group(Worker& worker, const GroupId& id, int64_t deadline_us) {
  Worker::Impl& impl = worker.impl();
  WorkerLock lock(impl.shared.mutex);
  return impl.groups.wait(lock, id, deadline_us);
}

Result<proto::GroupInfo> group_info(Worker& worker, const GroupId& id) {
  Worker::Impl& impl = worker.impl();
  proto::GetGroupRequest request;
  request.set_group_id(id.binary());
  auto found = found_group(impl.head_questions, request, "placement group " + id.hex());
  if (found || found.error().code != Code::kNotFound) return found;
  // The head has no record of a group that it refused.
  WorkerLock lock(impl.shared.mutex);
  if (!impl.groups.view().removed(id)) return found;
  proto::GroupInfo gone;
  gone.mutable_spec()->set_group_id(id.binary());
  gone.set_state(proto::GROUP_REMOVED);
  gone.set_why(impl.groups.view().why(id));
  return gone;
}

Result<proto::GroupInfo> find_group(Worker& worker, const std::string& name,
                                    const std::string& ray_namespace) {
  Worker::Impl& impl = worker.impl();
  proto::GetGroupRequest request;
  request.set_name(name);
  request.set_ray_namespace(ray_namespace.empty() ? impl.shared.context.ray_namespace
                                                  : ray_namespace);
  return found_group(impl.head_questions, request,
                     fmt::format("a placement group with the name '{}' in the namespace '{}'", name,
                                 request.ray_namespace()));
}

Result<std::vector<proto::GroupInfo>> list_groups(Worker& worker) {
  auto reply =
      worker.impl().head_questions.ask(&proto::HeadService::Stub::ListGroups, proto::Empty());
  if (!reply) return reply.error();
  return std::vector<proto::GroupInfo>(reply->groups().begin(), reply->groups().end());
}

CurrentGroup current_group(const Worker& worker) {
  Worker::Impl& impl = worker.impl();
  WorkerLock lock(impl.shared.mutex);
  return impl.groups.current();
}

}  // namespace rt::worker
