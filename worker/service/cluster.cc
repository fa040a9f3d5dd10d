// Blocking calls to the head.
#include <fmt/core.h>
#include <unistd.h>

#include "common/events/timeline.h"
#include "worker/core/death.h"
#include "worker/service/call_head.h"
#include "worker/service/executing_task.h"
#include "worker/service/groups.h"
#include "worker/service/impl.h"

namespace rt::worker {

Waited wait_for_drains(Worker& worker, std::map<NodeId, proto::NodeDrain>* known,
                       int64_t deadline_us) {
  Worker::Impl& impl = Groups::impl_of(worker);
  Worker::Impl::Lock lock(impl.mutex);
  std::map<NodeId, proto::NodeDrain> now;
  auto changed = [&] {
    now.clear();
    for (const auto& [id, node] : impl.nodes.table()) {
      if (node.has_drain()) now[id] = node.drain();
    }
    return !std::equal(
        now.begin(), now.end(), known->begin(), known->end(), [](const auto& a, const auto& b) {
          return a.first == b.first && a.second.deadline_ms() == b.second.deadline_ms();
        });
  };
  const Waited waited =
      impl.pump.wait_until(lock, deadline_us, [&] { return impl.stopping || changed(); });
  if (impl.stopping) return Waited::kFailed;
  if (waited == Waited::kDone) *known = std::move(now);
  return waited;
}

Result<std::vector<proto::Node>> Worker::nodes() {
  impl_->leases.settle();
  auto reply = ask_head(*impl_, &proto::HeadService::Stub::GetNodes, proto::GetNodesRequest());
  if (!reply) return reply.error();
  return std::vector<proto::Node>(reply->nodes().begin(), reply->nodes().end());
}

Result<bool> Worker::kv_put(const std::string& ns, const std::string& key, const std::string& value,
                            bool overwrite, bool outlives_job) {
  proto::KvPutRequest request;
  request.set_ns(ns);
  request.set_key(key);
  request.set_value(value);
  request.set_overwrite(overwrite);
  if (!outlives_job) request.set_job_id(impl_->context.job_id.binary());
  auto reply = call_head(*impl_, &proto::HeadService::Stub::KvPut, request);
  if (!reply) return reply.error();
  return reply->added();
}

Result<std::string> Worker::kv_get(const std::string& ns, const std::string& key) {
  proto::KvGetRequest request;
  request.set_ns(ns);
  request.set_key(key);
  auto reply = ask_head(*impl_, &proto::HeadService::Stub::KvGet, request);
  if (!reply) return reply.error();
  if (!reply->found())
    return make_error(Code::kNotFound, fmt::format("no key '{}' in namespace '{}'", key, ns));
  return std::move(*reply->mutable_value());
}

Result<bool> Worker::kv_delete(const std::string& ns, const std::string& key) {
  proto::KvGetRequest request;
  request.set_ns(ns);
  request.set_key(key);
  auto reply = call_head(*impl_, &proto::HeadService::Stub::KvDelete, request);
  if (!reply) return reply.error();
  return reply->added();
}

Result<std::vector<std::string>> Worker::kv_list(const std::string& ns, const std::string& prefix) {
  proto::KvListRequest request;
  request.set_ns(ns);
  request.set_prefix(prefix);
  auto reply = ask_head(*impl_, &proto::HeadService::Stub::KvList, request);
  if (!reply) return reply.error();
  return std::vector<std::string>(reply->keys().begin(), reply->keys().end());
}

Result<std::vector<proto::ActorInfo>> Worker::list_actors(bool all_namespaces) {
  proto::ListActorsRequest request;
  request.set_all_namespaces(all_namespaces);
  request.set_ray_namespace(impl_->context.ray_namespace);
  auto reply = ask_head(*impl_, &proto::HeadService::Stub::ListActors, request);
  if (!reply) return reply.error();
  return std::vector<proto::ActorInfo>(reply->actors().begin(), reply->actors().end());
}

Result<Actor> Worker::get_actor(const std::string& name, const std::string& ray_namespace,
                                proto::ActorInfo* info) {
  proto::GetActorRequest request;
  request.set_name(name);
  request.set_ray_namespace(ray_namespace.empty() ? impl_->context.ray_namespace : ray_namespace);
  auto reply = ask_head(*impl_, &proto::HeadService::Stub::GetActor, request);
  if (!reply) return reply.error();
  if (!reply->found() || reply->actor().state() == proto::ACTOR_DEAD) {
    return make_error(
        Code::kNotFound,
        fmt::format("Failed to look up actor '{}' in namespace '{}': no live actor has this name.",
                    name, request.ray_namespace()));
  }
  *info = reply->actor();
  ActorId id = ActorId::from_binary(reply->actor().spec().actor_id());
  Impl::Lock lock(impl_->mutex);
  impl_->actor_client.calls().link(id);
  impl_->actor_client.calls().actor_update(id, info);
  return Actor{id, {}};
}

Status Worker::kill_actor(const ActorId& actor, bool no_restart) {
  proto::KillActorRequest request;
  request.set_actor_id(actor.binary());
  request.set_no_restart(no_restart);
  request.set_why(proto::ExitInfo::KILLED_BY_USER);
  auto reply = call_head(*impl_, &proto::HeadService::Stub::KillActor, request);
  if (!reply) return reply.error();
  return {};
}

void Worker::metrics_changed() {
  Impl::Lock lock(impl_->mutex);
  impl_->recorder.metrics_changed();
}

Result<std::pair<std::string, int64_t>> Worker::timeline_json() {
  {
    Impl::Lock lock(impl_->mutex);
    impl_->recorder.flush();
    impl_->loop->flush_all();
  }
  Timeline trace({});
  std::string json;
  int64_t after = 0, dropped = 0, unreadable = 0;
  for (bool more = true; more;) {
    proto::GetTaskEventsRequest request;
    request.set_after_row(after);
    request.set_max_bytes(16 << 20);
    auto reply = ask_head(*impl_, &proto::HeadService::Stub::GetTaskEvents, request);
    if (!reply) return reply.error();
    for (const auto& batch : reply->batches()) {
      if (auto data = unpack_task_events(batch.packed()))
        trace.add(*data, &json);
      else
        unreadable += batch.count();
    }
    dropped = std::max(dropped, reply->dropped());
    after = reply->next_row();
    more = reply->more();
  }
  auto groups = ask_head(*impl_, &proto::HeadService::Stub::ListGroups, proto::Empty());
  if (!groups) return groups.error();
  trace.add_groups(*groups, wall_now_us(), &json);
  trace.end(&json);
  return std::make_pair(std::move(json), dropped + unreadable);
}

}  // namespace rt::worker
