// Blocking calls to the head, subscriptions, task events, metrics.
#include <fmt/core.h>
#include <unistd.h>

#include "common/base/readable.h"
#include "common/events/task_digest.h"
#include "common/events/timeline.h"
#include "worker/core/death.h"
#include "worker/service/call_head.h"
#include "worker/service/executing_task.h"
#include "worker/service/groups.h"
#include "worker/service/impl.h"

namespace rt::worker {

void Worker::Impl::subscribe(const proto::SubscribeRequest& request) {
  subscriptions.MergeFrom(request);
  with_head([request](Result<std::shared_ptr<rpc::Connection>> connection) {
    if (connection)
      rpc::call(**connection, &proto::HeadService::Stub::Subscribe, request, -1,
                [](Result<proto::Empty>) {});
  });
}

void Worker::Impl::resubscribe() {
  groups->head_is_back();
  proto::SubscribeRequest all = subscriptions;
  for (const auto& id : subscribed_actors) all.add_actor_ids(id);
  if (all.actor_ids().empty() && all.logs_of_job().empty()) return;
  rpc::call(*head, &proto::HeadService::Stub::Subscribe, all, -1,
            [this](Result<proto::Empty> subscribed) {
              if (subscribed || may_recover(subscribed.error().code)) return;
              notices.tell(
                  "The head, which was started again, does not tell this process of "
                  "its actors: " +
                  subscribed.error().message);
            });
}

uint32_t Worker::Impl::event_error(const proto::ErrorValue& error) {
  constexpr size_t kMaxMessage = 500, kMaxTraceback = 4000;
  std::string_view type =
      error.cause_class().empty() ? error_type_name(error) : error.cause_class();
  // The error that interrupted a running task.
  if (type == "ray.exceptions.TaskCancelledError") type = "TASK_CANCELLED";
  return events.string(fmt::format("{}\n{}\n{}", type, shortened(error.message(), kMaxMessage),
                                   shortened(error.traceback(), kMaxTraceback)));
}

uint32_t Worker::Impl::event_error(Bytes encoded) {
  const auto error = error_of(encoded);
  return error ? event_error(*error) : 0;
}

// The strings that all tasks of a template have in common.
const TaskEventCommon& Worker::Impl::event_of(ExecTemplate& function) {
  if (function.events_of != events.batch()) {
    function.events_of = events.batch();
    function.event.name = events.string(function.spec.name());
    function.event.function = events.string(function.display);
    function.event.resources = events.string(function.spec.resources().SerializeAsString());
    function.event.call_site = events.string(function.spec.call_site());
    function.event.placement_group = events.string(function.spec.group_id());
  }
  return function.event;
}

uint32_t Worker::Impl::event_owner_of(Link* link) {
  if (!link) return events.string(actor->spec().owner().worker_id() + actor->spec().owner().ip());
  if (link->events_of != events.batch()) {
    link->events_of = events.batch();
    const rpc::Peer& peer = link->connection->peer();
    link->event_owner =
        events.string(link->peer.binary() +
                      (peer.is_unix ? context.node_ip : peer.name.substr(0, peer.name.rfind(':'))));
  }
  return link->event_owner;
}

uint32_t Worker::Impl::event_parent_of(const TaskId& parent) {
  if (event_parent_index == 0 || parent != event_parent) {
    if (parent.is_nil()) return 0;
    event_parent = parent;
    event_parent_index = events.string(parent.binary());
  }
  return event_parent_index;
}

bool Worker::Impl::may_record_event() {
  // stop() has sent the last events.
  if (settings.task_events_report_interval_ms <= 0 || stopping) return false;
  events_recorded.add_one();
  if (static_cast<int64_t>(events.size()) < settings.task_events_buffer) return true;
  ++events_dropped;
  return false;
}

void Worker::Impl::record_event(const ExecutingTaskImpl& task) {
  const IncomingTask& incoming_task = task.incoming();
  if (incoming_task.function->spec.unrecorded() || !may_record_event()) return;
  TaskEventTimes times;
  times.created_us = incoming_task.created_us;
  times.start_us = task.start_us();
  times.deserialize_us = std::max<int64_t>(0, task.started_us() - task.start_us());
  times.execute_us = std::max<int64_t>(0, task.executed_us() - task.started_us());
  times.store_us = std::max<int64_t>(0, task.finished_us() - task.executed_us());
  const EventKind kind{incoming_task.function, incoming_task.link.get(), incoming_task.parent,
                       incoming_task.attempt};
  // A template or link that is new at the address of an old one has not been seen in this batch.
  const bool seen = kind.function->events_of == events.batch() &&
                    (!kind.link || kind.link->events_of == events.batch());
  if (seen && kind == event_kind && !task.failed()) {
    // One of many of its kind: only its times are new.
    events.add(task.id(), times);
  } else {
    event_kind = task.failed() ? EventKind() : kind;
    TaskEventCommon common = event_of(*incoming_task.function);
    common.attempt = static_cast<uint32_t>(incoming_task.attempt);
    common.parent = event_parent_of(incoming_task.parent);
    common.owner = event_owner_of(incoming_task.link.get());
    common.submission_recorded = incoming_task.link ? incoming_task.link->submissions_recorded
                                                    : actor->spec().submission_recorded();
    if (task.failed()) common.error = event_error(as_bytes(task.error_value()));
    common.kind = !incoming_task.link ? TaskEvent::kActorCreation
                  : actor             ? TaskEvent::kActorMethod
                                      : TaskEvent::kTask;
    events.add(task.id(), common, times);
  }
  recorded_event();
}

void Worker::Impl::record_failure(const Task& task, const proto::ErrorValue* error,
                                  const proto::ExitInfo* end) {
  if (task.function->spec.unrecorded() || !may_record_event()) return;
  TaskEvent event;
  event.task = task.id;
  event.attempt = task.attempt;
  event.name = events.string(task.function->spec.name());
  event.function = events.string(display_name(task.function->spec.function()));
  event.resources = events.string(task.function->spec.resources().SerializeAsString());
  event.call_site = events.string(task.function->spec.call_site());
  event.placement_group = events.string(task.function->spec.group_id());
  event.parent = event_parent_of(parent_of(task));
  event.created_us = task.created_us;
  if (error) event.error = event_error(*error);
  if (end && !end->worker_id().empty() && end->pid())
    event.owner = events.string(pack_event_process({end->worker_id(), end->node_id(), end->pid()}));
  event.start_us = wall_now_us();
  event.submission_recorded = profiles;
  event.kind =
      task.function->scheduling_class ? TaskEvent::kOwnerFailedTask : TaskEvent::kOwnerFailedMethod;
  events.add(event);
  event_kind = {};
  recorded_event();
}

void Worker::Impl::record_span(const std::string& type, int64_t start_us, int64_t end_us,
                               const std::string& extra) {
  // A batch must hold many spans.
  constexpr size_t kMaxBytes = 64 << 10;
  Lock lock(mutex);
  if (stopping || context.job_id.is_nil() || !may_record_event()) return;
  if (type.size() + extra.size() > kMaxBytes) return void(++events_dropped);
  TaskEvent event;
  event.task = submitting_task();
  for (const ExecutingTaskImpl* task = running; task; task = task->next()) {
    if (task->id() != event.task) continue;
    event.attempt = static_cast<uint32_t>(task->attempt());
    event.function = events.string(task->incoming().function->display);
  }
  // The span belongs to the driver itself, or to a thread outside of any task.
  if (event.task.is_nil()) event.task = put_task;
  event.name = events.string(type);
  event.call_site = events.string(extra);
  event.kind = TaskEvent::kSpan;
  event.start_us = start_us;
  event.execute_us = std::max<int64_t>(0, end_us - start_us);
  events.add(event);
  event_kind = {};
  const bool timer_was_set = event_timer_set;
  recorded_event();
  // The thread that reads must look at its timers again.
  if (!timer_was_set) pump.wake_reader();
}

void Worker::Impl::recorded_event() {
  // A batch costs the node-manager and the head about the same whatever it holds, unless its
  // strings grow large: every error has one of its own.
  constexpr size_t kFlushEvents = 65536, kFlushStringBytes = size_t{4} << 20;
  if (events.size() >= kFlushEvents || events.string_bytes() >= kFlushStringBytes) {
    flush_events();
  } else if (!event_timer_set) {
    event_timer_set = true;
    loop->run_after(std::min<int64_t>(250, settings.task_events_report_interval_ms) * 1000, [this] {
      event_timer_set = false;
      flush_events();
    });
  }
}

void Worker::Impl::flush_events() {
  if (events.size() == 0 || !node_manager || !node_manager->is_open()) return;
  TaskEventSource source;
  source.node_ip = context.node_ip;
  source.worker_hex = context.worker_id.hex();
  source.node_hex = context.node_id.hex();
  source.pid = static_cast<uint32_t>(getpid());
  source.is_driver = options.is_driver;
  source.is_cpp = options.language == proto::LANGUAGE_CPP;
  proto::TaskEventBatch batch;
  batch.set_job_id(job_of(events.first_task()).binary());
  batch.set_min_time_us(events.min_time_us());
  batch.set_max_time_us(events.max_time_us());
  batch.set_count(static_cast<int64_t>(events.size()));
  batch.set_dropped(events_dropped);
  batch.set_packed(events.events(source));
  batch.set_digest(events.digest(source));
  rpc::notify(*node_manager, &proto::NodeManagerService::Stub::AddTaskEvents, batch);
  events.clear();
  event_parent_index = 0;
  events_dropped = 0;
}

void Worker::Impl::schedule_metrics() {
  constexpr int64_t kIntervalUs = 1'000'000;
  if (metrics_timer_set || !options.metrics || !connected) return;
  metrics_timer_set = true;
  loop->run_after(std::max<int64_t>(0, metrics_sent_us + kIntervalUs - steady_now_us()), [this] {
    metrics_timer_set = false;
    flush_metrics();
  });
  pump.wake_reader();
}

void Worker::Impl::flush_metrics() {
  if (!options.metrics || !node_manager || !node_manager->is_open()) return;
  proto::MetricsReport report;
  if (!options.metrics->report(&report)) return;
  metrics_sent_us = steady_now_us();
  report.set_worker_id(context.worker_id.binary());
  report.set_job_id(context.job_id.binary());
  report.set_pid(getpid());
  rpc::notify(*node_manager, &proto::NodeManagerService::Stub::RecordMetrics, report);
}

void Worker::Impl::flush_records() {
  flush_events();
  flush_metrics();
}

// Returns idle leases and waits until their nodes have told the head: a node-manager reports
// before it answers GetStats. A grant that was on its way arrives before that answer and is
// returned, so that its node is asked again.
void Worker::Impl::settle_leases() {
  constexpr int64_t kLimitUs = 1'000'000;
  Lock lock(mutex);
  int64_t deadline = steady_now_us() + kLimitUs;
  returned_at.insert(NodeKey::nil());
  do {
    submitter->return_idle_leases();
    std::set<NodeKey> nodes;
    nodes.swap(returned_at);
    auto waiting = std::make_shared<size_t>(nodes.size());
    for (const NodeKey& node : nodes) {
      with_node(node, [waiting](Result<std::shared_ptr<rpc::Connection>> connection) {
        if (!connection) {
          --*waiting;
          return;
        }
        rpc::call(**connection, &proto::NodeManagerService::Stub::GetStats, proto::Empty(),
                  kLimitUs, [waiting](Result<proto::NodeStats>) { --*waiting; });
      });
    }
    pump.wait_until(lock, deadline, [&] { return *waiting == 0 || stopping; });
  } while (!returned_at.empty() && !stopping && steady_now_us() < deadline);
}

Waited wait_for_drains(Worker& worker, std::map<NodeId, proto::NodeDrain>* known,
                       int64_t deadline_us) {
  Worker::Impl& impl = Groups::impl_of(worker);
  Worker::Impl::Lock lock(impl.mutex);
  std::map<NodeId, proto::NodeDrain> now;
  auto changed = [&] {
    now.clear();
    for (const auto& [id, node] : impl.node_table) {
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
  impl_->settle_leases();
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
  auto reply = impl_->call_head(&proto::HeadService::Stub::KvPut, request);
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
  auto reply = impl_->call_head(&proto::HeadService::Stub::KvDelete, request);
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
  impl_->actors->link(id);
  impl_->actors->actor_update(id, info);
  return Actor{id, {}};
}

Status Worker::kill_actor(const ActorId& actor, bool no_restart) {
  proto::KillActorRequest request;
  request.set_actor_id(actor.binary());
  request.set_no_restart(no_restart);
  request.set_why(proto::ExitInfo::KILLED_BY_USER);
  auto reply = impl_->call_head(&proto::HeadService::Stub::KillActor, request);
  if (!reply) return reply.error();
  return {};
}

void Worker::metrics_changed() {
  Impl::Lock lock(impl_->mutex);
  impl_->schedule_metrics();
}

Result<std::pair<std::string, int64_t>> Worker::timeline_json() {
  {
    Impl::Lock lock(impl_->mutex);
    impl_->flush_records();
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
