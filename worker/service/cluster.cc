// The calls of bindings that wait for what the head, or news of it, says.
#include "worker/cluster.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/clock.h"
#include "observability/events/timeline.h"
#include "worker/drains.h"
#include "worker/output.h"
#include "worker/service/impl.h"

namespace rt::worker {

Waited wait_for_drains(Worker& worker, std::map<NodeId, proto::NodeDrain>* known,
                       int64_t deadline_us) {
  Worker::Impl& impl = worker.impl();
  WorkerLock lock(impl.shared.mutex);
  std::map<NodeId, proto::NodeDrain> now;
  auto changed = [&] {
    assert_locked();
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
      impl.pump.wait_until(lock, deadline_us, [&] { return impl.shared.stopping || changed(); });
  if (impl.shared.stopping) return Waited::kFailed;
  if (waited == Waited::kDone) *known = std::move(now);
  return waited;
}

void await_output(Worker& worker) {
  // Longer than the head waits for a node that does not answer.
  constexpr int64_t kMostUs = 5'000'000;
  const int64_t deadline_us = steady_now_us() + kMostUs;
  Worker::Impl& impl = worker.impl();
  WorkerLock lock(impl.shared.mutex);
  if (impl.shared.stopping || impl.head.is_lost()) return;
  proto::FlushLogsRequest request;
  request.set_job_id(impl.shared.context.job_id.binary());
  auto answered = std::make_shared<bool>(false);
  impl.head.with(
      [answered, request, deadline_us](Result<std::shared_ptr<rpc::Connection>> connection) {
        if (!connection) {
          *answered = true;
          return;
        }
        // The lines come before the answer, over the same connection.
        rpc::call(**connection, &proto::HeadService::Stub::FlushLogs, request,
                  std::max<int64_t>(deadline_us - steady_now_us(), 0),
                  [answered](const Result<proto::Empty>&) { *answered = true; });
      });
  auto over = [&] {
    assert_locked();
    return *answered || impl.shared.stopping || impl.head.is_lost();
  };
  while (impl.pump.wait_until(lock, deadline_us, over) == Waited::kInterrupted) {}
}

Result<std::vector<proto::Node>> cluster_nodes(Worker& worker) {
  {
    Worker::Impl& impl = worker.impl();
    WorkerLock lock(impl.shared.mutex);
    RT_TRY(impl.leases.settle(lock, impl.pump));
  }
  auto reply = worker.impl().head_questions.ask(&proto::HeadService::Stub::GetNodes,
                                                proto::GetNodesRequest());
  if (!reply) return reply.error();
  return std::vector<proto::Node>(reply->nodes().begin(), reply->nodes().end());
}

Result<bool> kv_put(Worker& worker, const std::string& ns, const std::string& key,
                    const std::string& value, bool overwrite, bool outlives_job) {
  proto::KvPutRequest request;
  request.set_ns(ns);
  request.set_key(key);
  request.set_value(value);
  request.set_overwrite(overwrite);
  if (!outlives_job) request.set_job_id(worker.impl().shared.context.job_id.binary());
  auto reply = worker.impl().head_questions.call(&proto::HeadService::Stub::KvPut, request);
  if (!reply) return reply.error();
  return reply->added();
}

Result<std::string> kv_get(Worker& worker, const std::string& ns, const std::string& key) {
  proto::KvGetRequest request;
  request.set_ns(ns);
  request.set_key(key);
  auto reply = worker.impl().head_questions.ask(&proto::HeadService::Stub::KvGet, request);
  if (!reply) return reply.error();
  if (!reply->found())
    return make_error(Code::kNotFound, fmt::format("no key '{}' in namespace '{}'", key, ns));
  return std::move(*reply->mutable_value());
}

Result<bool> kv_delete(Worker& worker, const std::string& ns, const std::string& key) {
  proto::KvGetRequest request;
  request.set_ns(ns);
  request.set_key(key);
  auto reply = worker.impl().head_questions.call(&proto::HeadService::Stub::KvDelete, request);
  if (!reply) return reply.error();
  return reply->added();
}

Result<std::vector<std::string>> kv_list(Worker& worker, const std::string& ns,
                                         const std::string& prefix) {
  proto::KvListRequest request;
  request.set_ns(ns);
  request.set_prefix(prefix);
  auto reply = worker.impl().head_questions.ask(&proto::HeadService::Stub::KvList, request);
  if (!reply) return reply.error();
  return std::vector<std::string>(reply->keys().begin(), reply->keys().end());
}

Result<std::vector<proto::ActorInfo>> list_actors(Worker& worker, bool all_namespaces) {
  proto::ListActorsRequest request;
  request.set_all_namespaces(all_namespaces);
  request.set_ray_namespace(worker.impl().shared.context.ray_namespace);
  auto reply = worker.impl().head_questions.ask(&proto::HeadService::Stub::ListActors, request);
  if (!reply) return reply.error();
  return std::vector<proto::ActorInfo>(reply->actors().begin(), reply->actors().end());
}

Result<Actor> Worker::get_actor(const std::string& name, const std::string& ray_namespace,
                                proto::ActorInfo* info) {
  proto::GetActorRequest request;
  request.set_name(name);
  request.set_ray_namespace(ray_namespace.empty() ? impl_->shared.context.ray_namespace
                                                  : ray_namespace);
  auto reply = impl_->head_questions.ask(&proto::HeadService::Stub::GetActor, request);
  if (!reply) return reply.error();
  if (!reply->found() || reply->actor().state() == proto::ACTOR_DEAD) {
    return make_error(
        Code::kNotFound,
        fmt::format("Failed to look up actor '{}' in namespace '{}': no live actor has this name.",
                    name, request.ray_namespace()));
  }
  *info = reply->actor();
  ActorId id = ActorId::from_binary(reply->actor().spec().actor_id());
  WorkerLock lock(impl_->shared.mutex);
  impl_->actor_client.calls().link(id);
  impl_->actor_client.update(*info);
  return Actor{id, {}};
}

Status Worker::kill_actor(const ActorId& actor, bool no_restart) {
  proto::KillActorRequest request;
  request.set_actor_id(actor.binary());
  request.set_no_restart(no_restart);
  request.set_why(proto::ExitInfo::KILLED_BY_USER);
  auto reply = impl_->head_questions.call(&proto::HeadService::Stub::KillActor, request);
  if (!reply) return reply.error();
  return {};
}

void Worker::metrics_changed() {
  WorkerLock lock(impl_->shared.mutex);
  impl_->recorder.metrics_changed();
}

Result<std::pair<std::string, int64_t>> timeline_json(Worker& worker) {
  {
    Worker::Impl& impl = worker.impl();
    WorkerLock lock(impl.shared.mutex);
    impl.recorder.flush();
    impl.shared.loop.flush_all();
  }
  Timeline trace({});
  std::string json;
  int64_t after = 0, dropped = 0, unreadable = 0;
  for (bool more = true; more;) {
    proto::GetTaskEventsRequest request;
    request.set_after_row(after);
    request.set_max_bytes(16 << 20);
    auto reply =
        worker.impl().head_questions.ask(&proto::HeadService::Stub::GetTaskEvents, request);
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
  auto groups =
      worker.impl().head_questions.ask(&proto::HeadService::Stub::ListGroups, proto::Empty());
  if (!groups) return groups.error();
  trace.add_groups(*groups, wall_now_us(), &json);
  trace.end(&json);
  return std::make_pair(std::move(json), dropped + unreadable);
}

}  // namespace rt::worker
