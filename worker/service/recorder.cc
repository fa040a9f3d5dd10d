#include "worker/service/recorder.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "common/base/clock.h"
#include "common/base/readable.h"
#include "common/rpc/client.h"
#include "observability/events/task_digest.h"
#include "observability/events/task_texts.h"
#include "worker/core/death.h"
#include "worker/service/executing_task.h"

namespace rt::worker {

Recorder::Recorder(const Options& options, const Context& context, net::Loop& loop,
                   const std::shared_ptr<rpc::Connection>& node_manager)
    : options_(options),
      context_(context),
      loop_(loop),
      node_manager_(node_manager),
      profiles_(std::getenv("RAY_PROFILING") != nullptr) {}

uint32_t Recorder::error_index(const proto::ErrorValue& error) {
  constexpr size_t kMaxMessage = 500, kMaxTraceback = 4000;
  std::string_view type =
      error.cause_class().empty() ? error_type_name(error) : error.cause_class();
  // The error that interrupted a running task.
  if (type == "ray.exceptions.TaskCancelledError") type = "TASK_CANCELLED";
  return events_.string(fmt::format("{}\n{}\n{}", type, shortened(error.message(), kMaxMessage),
                                    shortened(error.traceback(), kMaxTraceback)));
}

uint32_t Recorder::error_index(Bytes encoded) {
  const auto error = error_of(encoded);
  return error ? error_index(*error) : 0;
}

void Recorder::describe(const proto::TaskTemplate& spec, const std::string& display,
                        TaskEventCommon* event) {
  event->name = events_.string(spec.name());
  event->function = events_.string(display);
  event->resources = events_.string(spec.resources().SerializeAsString());
  for (const TaskText& text : kTaskTexts)
    event->*text.in_event = events_.string((spec.*text.in_template)());
  event->placement_group = events_.string(spec.group_id());
}

const TaskEventCommon& Recorder::common_of(ExecTemplate& function) {
  if (function.events_of != events_.batch()) {
    function.events_of = events_.batch();
    describe(function.spec, function.display, &function.event);
  }
  return function.event;
}

uint32_t Recorder::owner_index(Link* link, const proto::ActorSpec* actor) {
  if (!link) return events_.string(actor->owner().worker_id() + actor->owner().ip());
  if (link->events_of != events_.batch()) {
    link->events_of = events_.batch();
    const rpc::Peer& peer = link->connection->peer();
    link->event_owner = events_.string(
        link->peer.binary() +
        (peer.is_unix ? context_.node_ip : peer.name.substr(0, peer.name.rfind(':'))));
  }
  return link->event_owner;
}

uint32_t Recorder::parent_index(const TaskId& parent) {
  if (last_parent_index_ == 0 || parent != last_parent_) {
    if (parent.is_nil()) return 0;
    last_parent_ = parent;
    last_parent_index_ = events_.string(parent.binary());
  }
  return last_parent_index_;
}

bool Recorder::may_add() {
  if (options_.settings.task_events_report_interval_ms <= 0 || closed_) return false;
  recorded_.add_one();
  if (static_cast<int64_t>(events_.size()) < options_.settings.task_events_buffer) return true;
  ++dropped_;
  return false;
}

void Recorder::task_ended(const ExecutingTaskImpl& task, const proto::ActorSpec* actor) {
  const IncomingTask& incoming_task = task.incoming();
  if (incoming_task.function->spec.unrecorded() || !may_add()) return;
  TaskEventTimes times;
  times.created_us = incoming_task.created_us;
  const ExecutingTaskImpl::Times& at = task.times();
  times.start_us = at.start_us;
  times.deserialize_us = std::max<int64_t>(0, at.started_us - at.start_us);
  times.execute_us = std::max<int64_t>(0, at.executed_us - at.started_us);
  times.store_us = std::max<int64_t>(0, at.finished_us - at.executed_us);
  const Kind kind{incoming_task.function, incoming_task.link.get(), incoming_task.parent,
                  incoming_task.attempt};
  // A template or link that is new at the address of an old one has not been seen in this batch.
  const bool seen = kind.function->events_of == events_.batch() &&
                    (!kind.link || kind.link->events_of == events_.batch());
  if (seen && kind == last_kind_ && !task.reply().failed()) {
    // One of many of its kind: only its times are new.
    events_.add(task.id(), times);
  } else {
    last_kind_ = task.reply().failed() ? Kind() : kind;
    TaskEventCommon common = common_of(*incoming_task.function);
    common.attempt = static_cast<uint32_t>(incoming_task.attempt);
    common.parent = parent_index(incoming_task.parent);
    common.owner = owner_index(incoming_task.link.get(), actor);
    common.submission_recorded = incoming_task.link ? incoming_task.link->submissions_recorded
                                                    : actor->submission_recorded();
    if (task.reply().failed()) common.error = error_index(as_bytes(task.reply().error()));
    common.kind = !incoming_task.link ? TaskEvent::kActorCreation
                  : actor             ? TaskEvent::kActorMethod
                                      : TaskEvent::kTask;
    events_.add(task.id(), common, times);
  }
  added();
}

void Recorder::task_failed(const Task& task, const TaskId& parent, const proto::ErrorValue* error,
                           const proto::ExitInfo* end) {
  if (task.function->spec.unrecorded() || !may_add()) return;
  TaskEvent event;
  event.task = task.id;
  event.attempt = task.attempt;
  describe(task.function->spec, display_name(task.function->spec.function()), &event);
  event.parent = parent_index(parent);
  event.created_us = task.created_us;
  if (error) event.error = error_index(*error);
  if (end && !end->worker_id().empty() && end->pid())
    event.owner =
        events_.string(pack_event_process({end->worker_id(), end->node_id(), end->pid()}));
  event.start_us = wall_now_us();
  event.submission_recorded = profiles_;
  event.kind =
      task.function->scheduling_class ? TaskEvent::kOwnerFailedTask : TaskEvent::kOwnerFailedMethod;
  events_.add(event);
  last_kind_ = {};
  added();
}

void Recorder::span(const TaskId& task, const ExecutingTaskImpl* running, const std::string& type,
                    int64_t start_us, int64_t end_us, const std::string& extra) {
  // A batch must hold many spans.
  constexpr size_t kMaxBytes = 64 << 10;
  if (!may_add()) return;
  if (type.size() + extra.size() > kMaxBytes) return void(++dropped_);
  TaskEvent event;
  event.task = task;
  if (running) {
    event.attempt = static_cast<uint32_t>(running->attempt());
    event.function = events_.string(running->incoming().function->display);
  }
  event.name = events_.string(type);
  event.call_site = events_.string(extra);
  event.kind = TaskEvent::kSpan;
  event.start_us = start_us;
  event.execute_us = std::max<int64_t>(0, end_us - start_us);
  events_.add(event);
  last_kind_ = {};
  added();
}

void Recorder::added() {
  // A batch costs the node-manager and the head about the same whatever it holds, unless its
  // strings grow large: every error has one of its own.
  constexpr size_t kFlushEvents = 65536, kFlushStringBytes = size_t{4} << 20;
  if (events_.size() >= kFlushEvents || events_.string_bytes() >= kFlushStringBytes) {
    flush_events();
  } else if (!event_timer_set_) {
    event_timer_set_ = true;
    loop_.run_after(std::min<int64_t>(250, options_.settings.task_events_report_interval_ms) * 1000,
                    [this] {
                      assert_locked();
                      event_timer_set_ = false;
                      flush_events();
                    });
  }
}

void Recorder::flush_events() {
  if (events_.size() == 0 || !is_connected()) return;
  TaskEventSource source;
  source.node_ip = context_.node_ip;
  source.worker_hex = context_.worker_id.hex();
  source.node_hex = context_.node_id.hex();
  source.pid = static_cast<uint32_t>(getpid());
  source.is_driver = options_.is_driver;
  source.is_cpp = options_.language == proto::LANGUAGE_CPP;
  proto::TaskEventBatch batch;
  batch.set_job_id(job_of(events_.first_task()).binary());
  batch.set_min_time_us(events_.min_time_us());
  batch.set_max_time_us(events_.max_time_us());
  batch.set_count(static_cast<int64_t>(events_.size()));
  batch.set_dropped(dropped_);
  batch.set_packed(events_.events(source));
  batch.set_digest(events_.digest(source));
  rpc::notify(*node_manager_, &proto::NodeManagerService::Stub::AddTaskEvents, batch);
  events_.clear();
  last_parent_index_ = 0;
  dropped_ = 0;
}

void Recorder::metrics_changed() {
  constexpr int64_t kIntervalUs = 1'000'000;
  if (metrics_timer_set_ || !options_.metrics || !is_connected()) return;
  metrics_timer_set_ = true;
  loop_.run_after(std::max<int64_t>(0, metrics_sent_us_ + kIntervalUs - steady_now_us()), [this] {
    assert_locked();
    metrics_timer_set_ = false;
    flush_metrics();
  });
}

void Recorder::flush_metrics() {
  if (!options_.metrics || !is_connected()) return;
  proto::MetricsReport report;
  if (!options_.metrics->report(&report)) return;
  metrics_sent_us_ = steady_now_us();
  report.set_worker_id(context_.worker_id.binary());
  report.set_job_id(context_.job_id.binary());
  report.set_pid(getpid());
  rpc::notify(*node_manager_, &proto::NodeManagerService::Stub::RecordMetrics, report);
}

void Recorder::flush() {
  flush_events();
  flush_metrics();
}

}  // namespace rt::worker
