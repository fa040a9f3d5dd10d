#include "observability/state/task_query.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "common/base/log_names.h"
#include "common/base/readable.h"
#include "observability/api_json/node_json.h"
#include "observability/events/task_texts.h"
#include "observability/state/lineage.h"

namespace rt::state {
namespace {

constexpr std::array kSystemErrors = {"TASK_EXECUTION_EXCEPTION",
                                      "TASK_CANCELLED",
                                      "ACTOR_DIED",
                                      "ACTOR_UNAVAILABLE",
                                      "NODE_DIED",
                                      "LOCAL_RAYLET_DIED",
                                      "OUT_OF_MEMORY",
                                      "OUT_OF_DISK_ERROR",
                                      "OBJECT_LOST",
                                      "OWNER_DIED",
                                      "OBJECT_UNRECONSTRUCTABLE_MAX_ATTEMPTS_EXCEEDED",
                                      "TASK_UNSCHEDULABLE_ERROR",
                                      "TASK_PLACEMENT_GROUP_REMOVED",
                                      "ACTOR_PLACEMENT_GROUP_REMOVED",
                                      "RUNTIME_ENV_SETUP_FAILED",
                                      "WORKER_DIED"};

// Error messages in rows are shortened in the middle: the beginning says what was raised, the end
// where.
constexpr size_t kMaxErrorBytes = 500;

// The columns whose values TaskQuery::count() takes from a digest, and those that no task of this
// release has. A filter by any other column needs the events themselves.
constexpr std::string_view kDigestColumns[] = {"attempt_number",
                                               "name",
                                               "state",
                                               "job_id",
                                               "actor_id",
                                               "type",
                                               "func_or_class_name",
                                               "node_id",
                                               "worker_id",
                                               "worker_pid",
                                               "error_type",
                                               "language",
                                               "placement_group_id",
                                               "is_debugger_paused"};

bool in_digests(std::string_view column) {
  return std::find(std::begin(kDigestColumns), std::end(kDigestColumns), column) !=
         std::end(kDigestColumns);
}

// Extends TaskEvent::Kind by the pseudo-task of a driver. No event has this kind.
constexpr uint8_t kDriver = 255;

const char* type_of(uint8_t kind) {
  if (kind == kDriver) return "DRIVER_TASK";
  if (kind == TaskEvent::kActorCreation) return "ACTOR_CREATION_TASK";
  return kind == TaskEvent::kActorMethod || kind == TaskEvent::kOwnerFailedMethod ? "ACTOR_TASK"
                                                                                  : "NORMAL_TASK";
}

// The error type of a row: a system error by its name, and TASK_EXECUTION_EXCEPTION for everything
// that user code raises.
std::string_view error_type(std::string_view error) {
  std::string_view type = error.substr(0, error.find('\n'));
  return std::find(kSystemErrors.begin(), kSystemErrors.end(), type) == kSystemErrors.end()
             ? kSystemErrors.front()
             : type;
}

// Whether `name` ends in ".member".
bool ends_in_member(std::string_view name, std::string_view member) {
  return name.size() > member.size() + 1 && name.ends_with(member) &&
         name[name.size() - member.size() - 1] == '.';
}

}  // namespace

// One attempt of a task. It points into its batch or record, which must outlive it.
struct TaskQuery::View {
  TaskId task;
  ActorId actor;  // Nil if the task belongs to no actor.
  JobId job;
  uint32_t attempt = 0;
  uint8_t kind = TaskEvent::kTask;
  std::string_view name, function;
  const char* state = "NIL";
  // The process that runs the task or ran it; empty and 0 if it is not known.
  struct Place {
    std::string_view node_hex, worker_hex;
    int64_t pid = 0;
  } place;
  std::string_view parent;     // A binary id.
  std::string_view resources;  // Serialized; only for tasks that have ended.
  std::array<std::string_view, std::size(kTaskTexts)> texts;
  std::string_view placement_group;            // A binary id.
  std::string_view error_type, error_message;  // Empty if there was no error.
  struct Times {
    int64_t created_ms = 0, start_ms = 0, end_ms = 0;
    int64_t at_us = 0;  // The newest attempts by this time are kept.
  } times;
  bool is_cpp = false, owner_failed = false;
  const proto::TaskRecord* record = nullptr;
};

TaskQuery::TaskQuery(TaskSelection selection)
    : selection_(std::move(selection)), resource_(*find_resource("tasks")) {
  needs_events_ =
      std::any_of(resource_.columns.begin(), resource_.columns.end(), [this](const Column& column) {
        return selection_.filters.looks_at(column.name) && !in_digests(column.name);
      });
  looks_at_place_ = selection_.filters.looks_at("node_id") ||
                    selection_.filters.looks_at("worker_id") ||
                    selection_.filters.looks_at("worker_pid");
  auto wanted = [this](const char* column) -> std::optional<TaskId> {
    const std::string* text = selection_.filters.required(column);
    if (!text || !TaskId::is_valid(from_hex(*text))) return std::nullopt;
    return TaskId::from_hex(*text);
  };
  wanted_task_ = wanted("task_id");
  wanted_parent_ = wanted("parent_task_id");
}

bool TaskQuery::may_match(const TaskDigest& digest) const {
  return (!wanted_task_ || digest.may_have_task(*wanted_task_)) &&
         (!wanted_parent_ || digest.may_have_child_of(*wanted_parent_));
}

bool TaskQuery::can_count(const TaskDigest& digest) const {
  return !looks_at_place_ || std::none_of(digest.groups.begin(), digest.groups.end(),
                                          [](const TaskDigest::Group& group) {
                                            return is_recorded_by_owner(group.kind);
                                          });
}

void TaskQuery::add_live(const proto::TaskRecord& record) {
  if (!TaskId::is_valid(record.task_id())) return;
  Key key{TaskId::from_binary(record.task_id()), static_cast<uint32_t>(record.attempt())};
  auto [it, added] = live_.try_emplace(key, record);
  if (added) return;
  // The executing process knows the later state, so that record wins. Either of the two may lack
  // the parent and the time of submission, which are taken from whichever has them.
  proto::TaskRecord& known = it->second;
  std::string parent =
      known.parent_task_id().empty() ? record.parent_task_id() : known.parent_task_id();
  int64_t created_us = known.created_us() ? known.created_us() : record.created_us();
  if (record.state() > known.state()) known = record;
  known.set_parent_task_id(parent);
  known.set_created_us(created_us);
}

void TaskQuery::read(const TaskEventBatchData& batch, bool counted) {
  for (const TaskEvent& event : batch.events) {
    if (event.kind == TaskEvent::kSpan || !names_strings(event, batch.strings.size())) continue;
    View view;
    view.task = event.task;
    view.job = job_of(event.task);
    if (is_actor_task(event.kind)) view.actor = actor_of(event.task);
    view.attempt = event.attempt;
    view.kind = event.kind;
    view.name = batch.strings[event.name];
    view.function = batch.strings[event.function];
    view.parent = batch.strings[event.parent];
    view.resources = batch.strings[event.resources];
    for (size_t i = 0; i < view.texts.size(); ++i)
      view.texts[i] = batch.strings[event.*kTaskTexts[i].in_event];
    view.placement_group = batch.strings[event.placement_group];
    view.times.created_ms = event.created_us / 1000;
    view.owner_failed = is_recorded_by_owner(event.kind);
    view.is_cpp = batch.is_cpp;
    view.times.at_us = event.start_us;
    view.times.end_ms =
        (event.start_us + event.deserialize_us + event.execute_us + event.store_us) / 1000;
    Texts texts;
    if (view.owner_failed) {
      if (const auto process = unpack_event_process(batch.strings[event.owner])) {
        texts = {to_hex(process->node_id), to_hex(process->worker_id)};
        view.place.node_hex = texts.node;
        view.place.worker_hex = texts.worker;
        view.place.pid = process->pid;
      }
    } else {
      view.times.start_ms = event.start_us / 1000;
      view.place.node_hex = batch.node_hex;
      view.place.worker_hex = batch.worker_hex;
      view.place.pid = batch.pid;
    }
    view.state = event.error ? "FAILED" : "FINISHED";
    if (event.error) {
      std::string_view error = batch.strings[event.error];
      view.error_type = error_type(error);
      view.error_message = error.substr(std::min(error.find('\n'), error.size() - 1) + 1);
    }
    Key key{event.task, event.attempt};
    auto live = live_.find(key);
    if (live != live_.end() && view.parent.empty()) view.parent = live->second.parent_task_id();
    consider(key, view, counted);
    if (live != live_.end()) live_.erase(live);
  }
}

int64_t TaskQuery::count(const TaskDigest& digest) {
  int64_t matching = 0;
  for (const TaskDigest::Group& group : digest.groups) {
    View view;
    view.job = group.job;
    view.actor = group.actor;
    view.attempt = group.attempt;
    view.kind = group.kind;
    view.name = digest.strings[group.name];
    view.function = digest.strings[group.function];
    view.placement_group = digest.strings[group.placement_group];
    view.is_cpp = digest.is_cpp;
    if (!is_recorded_by_owner(group.kind)) {
      view.place.node_hex = digest.node_hex;
      view.place.worker_hex = digest.worker_hex;
      view.place.pid = digest.pid;
    }
    view.state = group.error ? "FAILED" : "FINISHED";
    if (group.error) view.error_type = error_type(digest.strings[group.error]);
    if (!matches(view)) continue;
    count(view, group.events);
    matching += group.events;
  }
  return matching;
}

TaskQuery::View TaskQuery::view_of(const Key& key, const proto::TaskRecord& record, Texts* texts) {
  *texts = {to_hex(record.node_id()), to_hex(record.worker_id())};
  View view;
  view.task = key.first;
  view.job = job_of(key.first);
  view.attempt = key.second;
  static_assert(int{proto::TaskRecord::TASK} == int{TaskEvent::kTask} &&
                int{proto::TaskRecord::ACTOR_CREATION} == int{TaskEvent::kActorCreation} &&
                int{proto::TaskRecord::ACTOR_METHOD} == int{TaskEvent::kActorMethod});
  view.kind = static_cast<uint8_t>(record.kind());
  if (is_actor_task(view.kind)) view.actor = actor_of(key.first);
  view.name = record.name();
  view.function = record.function();
  view.state = task_state_name(record.state());
  view.place.node_hex = texts->node;
  view.place.worker_hex = texts->worker;
  view.parent = record.parent_task_id();
  for (size_t i = 0; i < view.texts.size(); ++i) {
    const auto known = record.texts().find(kTaskTexts[i].column);
    if (known != record.texts().end()) view.texts[i] = known->second;
  }
  view.placement_group = record.group_id();
  view.place.pid = record.pid();
  view.times.created_ms = record.created_us() / 1000;
  view.times.start_ms = record.start_time_us() / 1000;
  view.times.at_us = std::numeric_limits<int64_t>::max();
  view.is_cpp = record.language() == proto::LANGUAGE_CPP;
  view.record = &record;
  return view;
}

bool TaskQuery::any_live_task_matches() const {
  Texts texts;
  return std::any_of(live_.begin(), live_.end(), [&](const auto& live) {
    return matches(view_of(live.first, live.second, &texts));
  });
}

void TaskQuery::take_live() {
  Texts texts;
  for (const auto& [key, record] : live_) consider(key, view_of(key, record, &texts), true);
  live_.clear();
}

void TaskQuery::add_driver(const proto::JobInfo& job) {
  if (!JobId::is_valid(job.job_id())) return;
  View view;
  view.job = JobId::from_binary(job.job_id());
  view.task = driver_task_id(view.job);
  view.kind = kDriver;
  view.name = view.function = job.config().entrypoint();
  view.state = job.finished() ? "FINISHED" : "RUNNING";
  std::string node = to_hex(job.driver_node_id()), worker = to_hex(job.driver_worker_id());
  view.place.node_hex = node;
  view.place.worker_hex = worker;
  view.place.pid = job.driver_pid();
  view.times.start_ms = job.start_time_ms();
  view.times.end_ms = job.end_time_ms();
  view.times.at_us = std::numeric_limits<int64_t>::max();
  consider({view.task, 0}, view, true);
}

std::string TaskQuery::name_of(const View& view) const {
  std::string_view name = view.name;
  if (std::string_view type = type_of(view.kind); type == "NORMAL_TASK") {
    if (ends_in_member(name, view.function)) name = view.function;  // This drops the module.
  } else if (ends_in_member(view.function, name)) {
    name = view.function;  // This adds the class.
  }
  if (view.kind != TaskEvent::kActorCreation) return std::string(name);
  auto actor = selection_.actor_names.find(view.actor);
  return actor == selection_.actor_names.end() ? std::string(name)
                                               : actor->second + ":" + std::string(name);
}

Field TaskQuery::field(const View& view, int column) const {
  const std::string& key = resource_.columns[column].name;
  auto text = [](std::string_view value) {
    return value.empty() ? Field() : Field(std::string(value));
  };
  if (key == "task_id") return view.task.hex();
  if (key == "attempt_number") return int64_t{view.attempt};
  if (key == "name") return name_of(view);
  if (key == "state") return std::string(view.state);
  if (key == "job_id") return view.job.hex();
  if (key == "actor_id") return view.actor.is_nil() ? Field() : Field(view.actor.hex());
  if (key == "type") return std::string(type_of(view.kind));
  if (key == "func_or_class_name") return text(view.function);
  if (key == "parent_task_id") return text(to_hex(view.parent));
  if (key == "node_id") return text(view.place.node_hex);
  if (key == "worker_id") return text(view.place.worker_hex);
  if (key == "worker_pid") return view.place.pid ? Field(view.place.pid) : Field();
  if (key == "error_type") return text(view.error_type);
  if (key == "placement_group_id") return text(to_hex(view.placement_group));
  if (key == "language") return std::string(view.is_cpp ? "CPP" : "PYTHON");
  for (size_t i = 0; i < view.texts.size(); ++i) {
    if (key == kTaskTexts[i].column) return text(view.texts[i]);
  }
  // No task of this release has the other columns.
  return {};
}

Json TaskQuery::row_of(const View& view) const {
  Json row = Json::object();
  for (size_t i = 0; i < resource_.columns.size(); ++i) {
    Field value = field(view, static_cast<int>(i));
    Json& cell = row[resource_.columns[i].name];
    if (const auto* text = std::get_if<std::string>(&value)) cell = *text;
    if (const auto* number = std::get_if<int64_t>(&value)) cell = *number;
  }
  Json events = Json::array();
  if (view.times.created_ms)
    events.push_back({{"state", "PENDING_ARGS_AVAIL"}, {"created_ms", view.times.created_ms}});
  if (view.times.start_ms)
    events.push_back({{"state", "RUNNING"}, {"created_ms", view.times.start_ms}});
  if (view.times.end_ms)
    events.push_back({{"state", view.state}, {"created_ms", view.times.end_ms}});
  row["events"] = events;
  if (view.times.created_ms) row["creation_time_ms"] = view.times.created_ms;
  if (proto::Resources asked;
      !view.resources.empty() &&
      asked.ParseFromArray(view.resources.data(), static_cast<int>(view.resources.size()))) {
    row["required_resources"] = api_json::amounts_json(asked);
  }
  if (view.times.start_ms) row["start_time_ms"] = view.times.start_ms;
  if (view.times.end_ms) row["end_time_ms"] = view.times.end_ms;
  if ((view.times.start_ms || view.owner_failed) && view.place.pid &&
      !view.place.worker_hex.empty()) {
    // The whole files of the worker. Markers in them tell which lines are the task's (log_tail.h).
    const std::string pid = std::to_string(view.place.pid);
    row["task_log_info"] = {{"stdout_file", worker_log_name(view.place.worker_hex, pid, false)},
                            {"stderr_file", worker_log_name(view.place.worker_hex, pid, true)}};
  }
  if (!view.error_type.empty())
    row["error_message"] = shortened(view.error_message, kMaxErrorBytes);
  if (view.record) {
    row["required_resources"] = api_json::amounts_json(view.record->resources());
    const std::string& env = view.record->runtime_env();
    row["runtime_env_info"] = {{"serialized_runtime_env", env.empty() ? "{}" : env}};
    row["waits_for"] = optional_text(view.record->waits_for());
  }
  return row;
}

bool TaskQuery::matches(const View& view) const {
  return selection_.filters.match([&](int column) { return field(view, column); });
}

void TaskQuery::count(const View& view, int64_t tasks) {
  types_[type_of(view.kind)] += tasks;
  Count& count = counts_[name_of(view)];
  count.type = type_of(view.kind);
  count.states[view.state] += tasks;
  total_ += tasks;
  if (selection_.by_kind)
    kinds_[{name_of(view), view.state, view.job.hex(), view.attempt > 0}] += tasks;
}

void TaskQuery::consider(const Key& key, const View& view, bool counted) {
  if (!matches(view)) return;
  if (counted) count(view, 1);
  keep(key, view);
}

bool TaskQuery::may_keep_rows_ending_by(int64_t before_us) const {
  return selection_.limit > 0 && (static_cast<int64_t>(kept_.size()) < selection_.limit ||
                                  by_time_.begin()->first <= before_us);
}

void TaskQuery::keep(const Key& key, const View& view) {
  if (selection_.limit <= 0) return;
  auto known = kept_.find(key);
  if (known != kept_.end()) {
    // The attempt was recorded twice: by the process that ran it, and by its owner, which did not
    // get the reply. The owner's outcome counts; the place and time come from the other record.
    --total_;
    Kept& kept = known->second;
    Json other = row_of(view);
    if (view.owner_failed) std::swap(kept.row, other);
    for (const char* column :
         {"node_id", "worker_id", "worker_pid", "start_time_ms", "parent_task_id",
          "creation_time_ms", "required_resources", "placement_group_id"}) {
      if (kept.row[column].is_null()) kept.row[column] = other[column];
    }
    return;
  }
  if (static_cast<int64_t>(kept_.size()) >= selection_.limit) {
    auto oldest = by_time_.begin();
    if (oldest->first > view.times.at_us) return;
    kept_.erase(oldest->second);
    by_time_.erase(oldest);
  }
  kept_[key] = Kept{row_of(view), view.times.at_us};
  by_time_.emplace(view.times.at_us, key);
}

TaskQuery::Result TaskQuery::rows() {
  take_live();
  Result result;
  result.total = total_;
  for (auto& [key, kept] : kept_) result.rows.push_back(std::move(kept.row));
  return result;
}

std::map<TaskQuery::Kind, int64_t> TaskQuery::kinds() {
  take_live();
  return std::move(kinds_);
}

std::set<ActorId> TaskQuery::busy_actors() const {
  std::set<ActorId> busy;
  for (const auto& [key, record] : live_) {
    // The state of a call that has started says more than RUNNING when it waits for room.
    if (record.start_time_us() > 0 && record.kind() == proto::TaskRecord::ACTOR_METHOD)
      busy.insert(actor_of(key.first));
  }
  return busy;
}

Json TaskQuery::summary() {
  take_live();
  Json summary = Json::object();
  for (const auto& [name, count] : counts_)
    summary[name] = {
        {"func_or_class_name", name}, {"type", count.type}, {"state_counts", count.states}};
  return totals(std::move(summary), "func_name");
}

Json TaskQuery::lineage() {
  Result found = rows();
  Json summary = totals(lineage_of(found.rows), "lineage");
  if (const auto shown = static_cast<int64_t>(found.rows.size()); shown < found.total) {
    summary["warnings"] = {
        fmt::format("the newest {} of {} tasks are shown by lineage; the totals count all", shown,
                    found.total)};
  }
  return summary;
}

Json TaskQuery::totals(Json summary, const char* by) {
  return {{"summary", std::move(summary)},
          {"total_tasks", types_["NORMAL_TASK"]},
          {"total_actor_tasks", types_["ACTOR_TASK"]},
          {"total_actor_scheduled", types_["ACTOR_CREATION_TASK"]},
          {"summary_by", by}};
}

}  // namespace rt::state
