#include "observability/state/rows.h"

#include <map>
#include <set>
#include <utility>

#include "common/base/ids.h"
#include "common/base/json_text.h"
#include "observability/api_json/node_json.h"

namespace rt::state {
namespace {

const char* actor_state(proto::ActorState state) {
  switch (state) {
    case proto::ACTOR_ALIVE: return "ALIVE";
    case proto::ACTOR_RESTARTING: return "RESTARTING";
    case proto::ACTOR_DEAD: return "DEAD";
    case proto::ACTOR_DEPENDENCIES_UNREADY: return "DEPENDENCIES_UNREADY";
    default: return "PENDING_CREATION";
  }
}

const char* death_reason(proto::ExitInfo::Kind kind) {
  switch (kind) {
    case proto::ExitInfo::KILLED_BY_USER: return "RAY_KILL";
    case proto::ExitInfo::OUT_OF_SCOPE: return "OUT_OF_SCOPE";
    case proto::ExitInfo::OWNER_DIED: return "OWNER_DIED";
    case proto::ExitInfo::NODE_DIED: return "NODE_DIED";
    case proto::ExitInfo::JOB_FINISHED: return "OUT_OF_SCOPE";
    default: return "WORKER_DIED";
  }
}

Json death_cause(const proto::ActorInfo& actor) {
  const proto::ActorSpec& spec = actor.spec();
  const proto::ExitInfo& death = actor.death();
  Json context = {{"error_message", death.message()},
                  {"owner_id", to_hex(spec.owner().worker_id())},
                  {"owner_ip_address", spec.owner().ip()},
                  {"node_ip_address", death.ip()},
                  {"pid", death.pid()},
                  {"ray_namespace", spec.ray_namespace()},
                  {"class_name", spec.class_name()},
                  {"actor_id", to_hex(spec.actor_id())},
                  {"reason", death_reason(death.kind())},
                  {"name", spec.name()},
                  {"never_started", death.kind() == proto::ExitInfo::UNSCHEDULABLE}};
  return {{death.kind() == proto::ExitInfo::INIT_FAILED ? "creation_task_failure_context"
                                                        : "actor_died_error_context",
           context}};
}

// The state API's name for the way in which a worker or driver ended.
const char* exit_type(const proto::ProcessInfo& process) {
  const proto::ExitInfo& exit = process.exit();
  if (process.is_driver()) return "INTENDED_USER_EXIT";
  switch (exit.kind()) {
    case proto::ExitInfo::EXITED:
      return exit.exit_code() == 0 ? "INTENDED_USER_EXIT" : "SYSTEM_ERROR";
    case proto::ExitInfo::INTENTIONAL:
      // An idle worker that was asked to leave, or an actor that called exit_actor().
      return process.actor_id().empty() ? "INTENDED_SYSTEM_EXIT" : "INTENDED_USER_EXIT";
    case proto::ExitInfo::OUT_OF_SCOPE: return "INTENDED_USER_EXIT";
    case proto::ExitInfo::KILLED_BY_USER:
    case proto::ExitInfo::OWNER_DIED:
    case proto::ExitInfo::JOB_FINISHED:
    case proto::ExitInfo::GROUP_REMOVED: return "INTENDED_SYSTEM_EXIT";
    case proto::ExitInfo::INIT_FAILED: return "USER_ERROR";
    case proto::ExitInfo::OUT_OF_MEMORY: return "NODE_OUT_OF_MEMORY";
    default: return "SYSTEM_ERROR";
  }
}

const char* reference_type(const proto::ObjectRecord& object) {
  if (object.is_actor()) return "ACTOR_HANDLE";
  if (object.pending_uses() > 0) return "USED_BY_PENDING_TASK";
  // The only local reference is the one that the containing object holds.
  if (object.contained() && object.local_refs() <= 1) return "CAPTURED_IN_OBJECT";
  if (object.local_refs() > 0) return "LOCAL_REFERENCE";
  return object.in_store() ? "PINNED_IN_MEMORY" : "UNKNOWN_STATUS";
}

const char* task_status(const proto::ObjectRecord& object) {
  if (object.is_actor() || !object.owned()) return "NIL";
  return object.ready() ? "FINISHED" : task_state_name(object.task_state());
}

Json driver_info(const std::string& id, const std::string& ip, int pid) {
  return {{"id", id}, {"node_ip_address", ip}, {"pid", std::to_string(pid)}};
}

Json metadata_of(const google::protobuf::Map<std::string, std::string>& metadata) {
  Json out = Json::object();
  for (const auto& [key, value] : metadata) out[key] = value;
  return out;
}

Json runtime_env_of(const std::string& text) {
  if (text.empty()) return Json::object();
  Json env = parse_ordered_json(text);
  return env.is_discarded() ? Json(text) : env;
}

Json driver_row(const proto::JobInfo& job) {
  std::string id = to_hex(job.job_id());
  return {{"type", "DRIVER"},
          {"job_id", id},
          {"submission_id", nullptr},
          {"driver_info", driver_info(id, job.driver_ip(), job.driver_pid())},
          {"status", job.finished() ? "SUCCEEDED" : "RUNNING"},
          {"entrypoint", job.config().entrypoint()},
          {"message", nullptr},
          {"error_type", nullptr},
          {"start_time", job.start_time_ms()},
          {"end_time", job.end_time_ms()},
          {"metadata", metadata_of(job.config().metadata())},
          {"runtime_env", runtime_env_of(job.config().runtime_env())},
          {"driver_agent_http_address", nullptr},
          {"driver_node_id", optional_hex(job.driver_node_id())},
          {"driver_exit_code", nullptr}};
}

Json submitted_row(const proto::SubmittedJob& job, const proto::JobInfo* driver) {
  return {{"type", "SUBMISSION"},
          {"job_id", optional_hex(driver ? driver->job_id() : job.job_id())},
          {"submission_id", job.submission_id()},
          {"driver_info",
           driver ? driver_info(to_hex(driver->job_id()), driver->driver_ip(), driver->driver_pid())
                  : Json()},
          {"status", job.status()},
          {"entrypoint", job.entrypoint()},
          {"message", optional_text(job.message())},
          {"error_type", optional_text(job.error_type())},
          {"start_time", job.start_time_ms()},
          {"end_time", job.end_time_ms() ? Json(job.end_time_ms()) : Json()},
          {"metadata", metadata_of(job.metadata())},
          {"runtime_env", runtime_env_of(job.runtime_env_json())},
          {"driver_agent_http_address", nullptr},
          {"driver_node_id", optional_hex(job.node_id())},
          {"driver_exit_code", job.exited() ? Json(job.exit_code()) : Json()}};
}

}  // namespace

Json optional_text(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json optional_hex(const std::string& bytes) { return bytes.empty() ? Json() : Json(to_hex(bytes)); }

const char* task_state_name(proto::TaskRecord::State state) {
  switch (state) {
    case proto::TaskRecord::PENDING_ARGS_AVAIL: return "PENDING_ARGS_AVAIL";
    case proto::TaskRecord::PENDING_NODE_ASSIGNMENT: return "PENDING_NODE_ASSIGNMENT";
    case proto::TaskRecord::SUBMITTED_TO_WORKER: return "SUBMITTED_TO_WORKER";
    case proto::TaskRecord::PENDING_OBJ_STORE_MEM_AVAIL: return "PENDING_OBJ_STORE_MEM_AVAIL";
    case proto::TaskRecord::PENDING_ARGS_FETCH: return "PENDING_ARGS_FETCH";
    case proto::TaskRecord::PENDING_TURN: return "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY";
    case proto::TaskRecord::RUNNING: return "RUNNING";
    default: return "NIL";
  }
}

Json actor_row(const proto::ActorInfo& actor) {
  const proto::ActorSpec& spec = actor.spec();
  bool dead = actor.state() == proto::ACTOR_DEAD;
  const std::string& node = dead && actor.address().node_id().empty() ? actor.death().node_id()
                                                                      : actor.address().node_id();
  int pid = dead && actor.pid() == 0 ? actor.death().pid() : actor.pid();
  return api_json::object_of(
      {{"actor_id", to_hex(spec.actor_id())},
       {"class_name", spec.class_name()},
       {"state", actor_state(actor.state())},
       {"job_id", to_hex(spec.job_id())},
       {"name", spec.name()},
       {"node_id", optional_hex(node)},
       {"pid", pid},
       {"ray_namespace", spec.ray_namespace()},
       {"serialized_runtime_env",
        spec.creation().runtime_env().empty() ? "{}" : spec.creation().runtime_env()},
       {"required_resources", api_json::amounts_json(spec.creation().resources())},
       {"death_cause", dead ? death_cause(actor) : Json()},
       {"is_detached", spec.detached()},
       {"placement_group_id", optional_hex(spec.creation().group_id())},
       {"repr_name", ""},
       {"num_restarts", actor.num_restarts()},
       {"num_restarts_due_to_lineage_reconstruction", 0},
       {"num_restarts_due_to_node_preemption", 0},
       {"call_site", optional_text(spec.creation().call_site())},
       {"label_selector", Json::object()},
       {"fallback_strategy", nullptr}});
}

Json node_message(const proto::Node& node) {
  return optional_text(node.alive() ? node.problem() : node.death_message());
}

Json node_row(const proto::Node& node) {
  std::string id = to_hex(node.node_id());
  Json labels = api_json::node_labels_json(node, id);
  return api_json::object_of({{"node_id", std::move(id)},
                              {"node_ip", node.ip()},
                              {"is_head_node", node.is_head()},
                              {"state", node.alive() ? "ALIVE" : "DEAD"},
                              {"state_message", node_message(node)},
                              {"node_name", api_json::node_name(node)},
                              {"resources_total", api_json::node_resources_json(node)},
                              {"labels", std::move(labels)},
                              {"start_time_ms", node.start_time_ms()},
                              {"end_time_ms", node.end_time_ms()}});
}

Json worker_row(const proto::ProcessInfo& process, const proto::Node& node) {
  bool alive = process.alive();
  return api_json::object_of(
      {{"worker_id", to_hex(process.worker_id())},
       {"is_alive", alive},
       {"worker_type", process.is_driver() ? "DRIVER" : "WORKER"},
       {"exit_type", alive ? Json() : Json(exit_type(process))},
       {"node_id", to_hex(node.node_id())},
       {"ip", node.ip()},
       {"pid", process.pid()},
       {"exit_detail", alive ? Json() : optional_text(process.exit().message())},
       {"worker_launch_time_ms", nullptr},
       {"worker_launched_time_ms", nullptr},
       {"start_time_ms", process.start_time_ms()},
       {"end_time_ms", process.end_time_ms()},
       {"debugger_port", nullptr},
       {"num_paused_threads", nullptr}});
}

Json runtime_env_row(const proto::RuntimeEnvInfo& env, const proto::Node& node) {
  return {{"runtime_env", runtime_env_of(env.runtime_env())},
          {"success", env.success()},
          {"creation_time_ms", static_cast<double>(env.setup_us()) / 1000},
          {"node_id", to_hex(node.node_id())},
          {"ref_cnt", env.workers()},
          {"error", optional_text(env.error())}};
}

Json object_row(const proto::ObjectRecord& object, const proto::ObjectRecords& process) {
  return api_json::object_of(
      {{"object_id", to_hex(object.object_id())},
       {"object_size", object.size()},
       {"task_status", task_status(object)},
       {"attempt_number", object.attempt() + 1},
       {"reference_type", reference_type(object)},
       {"call_site", object.call_site().empty() ? "disabled" : object.call_site()},
       {"type", process.is_driver() ? "DRIVER" : "WORKER"},
       {"pid", process.pid()},
       {"ip", process.ip()}});
}

std::vector<Json> job_rows(const proto::GetSnapshotReply& jobs) {
  std::map<std::string, std::vector<const proto::JobInfo*>> drivers_of;  // By submission id.
  for (const proto::JobInfo& driver : jobs.drivers().jobs())
    drivers_of[driver.config().submission_id()].push_back(&driver);
  std::set<const proto::JobInfo*> merged;
  std::set<std::string> submitted;
  std::vector<Json> rows;
  for (const proto::SubmittedJob& job : jobs.submitted_jobs().jobs()) {
    submitted.insert(job.submission_id());
    const proto::JobInfo* last = nullptr;
    for (const proto::JobInfo* driver : drivers_of[job.submission_id()]) {
      // The head names the driver as soon as its registration is on disk.
      if (job.job_id().empty() || driver->job_id() == job.job_id()) last = driver;
    }
    merged.insert(last);
    rows.push_back(submitted_row(job, last));
  }
  for (const proto::JobInfo& driver : jobs.drivers().jobs()) {
    const std::string& submission = driver.config().submission_id();
    // When a submitted job was deleted, its drivers that have ended are left out, too.
    const bool deleted = !submission.empty() && !submitted.contains(submission);
    if (!merged.contains(&driver) && !(deleted && driver.finished()))
      rows.push_back(driver_row(driver));
  }
  return rows;
}

Field field_of(const Json& row, const Resource& resource, int column) {
  const Column& wanted = resource.columns[column];
  auto value = row.find(wanted.name);
  if (value == row.end() || value->is_null()) return {};
  if (wanted.type == ColumnType::kInt)
    return value->is_number() ? Field(value->get<int64_t>()) : Field();
  if (wanted.type == ColumnType::kBool)
    return value->is_boolean() ? Field(value->get<bool>()) : Field();
  return value->is_string() ? value->get<std::string>() : value->dump();
}

Json shown(Json row, const Resource& resource, bool detail) {
  Json::object_t out;
  out.reserve(resource.columns.size());
  for (const Column& column : resource.columns) {
    if (column.detail && !detail) continue;
    auto value = row.find(column.name);
    out.emplace_back(column.name, value == row.end() ? Json() : std::move(*value));
  }
  return out;
}

}  // namespace rt::state
