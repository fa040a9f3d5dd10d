#include "observability/state/columns.h"

#include <algorithm>

#include "observability/events/task_texts.h"

namespace rt::state {
namespace {

constexpr std::string_view kTaskStates =
    "NIL PENDING_ARGS_AVAIL PENDING_NODE_ASSIGNMENT PENDING_OBJ_STORE_MEM_AVAIL PENDING_ARGS_FETCH "
    "SUBMITTED_TO_WORKER PENDING_ACTOR_TASK_ARGS_FETCH "
    "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY RUNNING RUNNING_IN_RAY_GET RUNNING_IN_RAY_WAIT "
    "FINISHED FAILED GETTING_AND_PINNING_ARGS";

struct Values {
  std::string_view resource, column, values;
};
// The possible values of columns that hold a state or a type.
constexpr Values kValues[] = {
    {"actors", "state", "DEPENDENCIES_UNREADY PENDING_CREATION ALIVE RESTARTING DEAD"},
    {"jobs", "type", "SUBMISSION DRIVER"},
    {"jobs", "status", "PENDING RUNNING STOPPED SUCCEEDED FAILED"},
    {"placement_groups", "state", "PENDING PREPARED CREATED REMOVED RESCHEDULING"},
    {"nodes", "state", "ALIVE DEAD"},
    {"workers", "worker_type", "WORKER DRIVER SPILL_WORKER RESTORE_WORKER"},
    {"workers", "exit_type",
     "SYSTEM_ERROR INTENDED_SYSTEM_EXIT USER_ERROR INTENDED_USER_EXIT NODE_OUT_OF_MEMORY"},
    {"tasks", "state", kTaskStates},
    {"tasks", "type", "NORMAL_TASK ACTOR_CREATION_TASK ACTOR_TASK DRIVER_TASK"},
    {"objects", "task_status", kTaskStates},
    {"objects", "reference_type",
     "ACTOR_HANDLE PINNED_IN_MEMORY LOCAL_REFERENCE USED_BY_PENDING_TASK CAPTURED_IN_OBJECT "
     "UNKNOWN_STATUS"},
    {"objects", "type", "WORKER DRIVER SPILL_WORKER RESTORE_WORKER"},
};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(' ', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// `spec` is a list of "name:flags". The flags are i (int), b (bool) or o (other) for the type,
// which is text by default, d (detail) and f (filterable).
Resource make(std::string name, std::string id, std::string_view spec) {
  Resource resource{std::move(name), std::move(id), {}};
  for (std::string_view word : words_of(spec)) {
    size_t colon = std::min(word.find(':'), word.size());
    Column column{std::string(word.substr(0, colon))};
    for (char flag : word.substr(std::min(colon + 1, word.size()))) {
      if (flag == 'd') column.detail = true;
      if (flag == 'f') column.filterable = true;
      if (flag == 'i') column.type = ColumnType::kInt;
      if (flag == 'b') column.type = ColumnType::kBool;
      if (flag == 'o') column.type = ColumnType::kOther;
    }
    for (const Values& known : kValues) {
      if (known.resource == resource.name && known.column == column.name)
        column.values = words_of(known.values);
    }
    resource.columns.push_back(std::move(column));
  }
  return resource;
}

// The columns that Ray has stand in Ray's order; further ones come after them.
Resource tasks() {
  Resource resource =
      make("tasks", "task_id",
           "task_id:f attempt_number:if name:f state:f job_id:f actor_id:f type:f "
           "func_or_class_name:f parent_task_id:f node_id:f worker_id:f worker_pid:if "
           "error_type:f language:df required_resources:od runtime_env_info:od "
           "placement_group_id:df events:od profiling_data:od creation_time_ms:id "
           "start_time_ms:id end_time_ms:id task_log_info:od error_message:d "
           "is_debugger_paused:bdf call_site:d label_selector:od fallback_strategy:od waits_for:d");
  for (const TaskText& text : kTaskTexts) {
    if (resource.column(text.column) >= 0) continue;
    resource.columns.push_back({.name = text.column, .detail = true});
  }
  return resource;
}

const std::vector<Resource>& resources() {
  static const std::vector<Resource> all = {
      make("actors", "actor_id",
           "actor_id:f class_name:f state:f job_id:f name:f node_id:f pid:if ray_namespace:f "
           "serialized_runtime_env:d required_resources:od death_cause:od "
           "is_detached:bd placement_group_id:df repr_name:df num_restarts:id "
           "num_restarts_due_to_lineage_reconstruction:id "
           "num_restarts_due_to_node_preemption:id call_site:d label_selector:od "
           "fallback_strategy:od"),
      make("jobs", "job_id",
           "type:f job_id:f submission_id:f driver_info:o status:f entrypoint message error_type "
           "start_time:id end_time:id metadata:od runtime_env:od "
           "driver_agent_http_address:d driver_node_id:d driver_exit_code:id"),
      make("placement_groups", "placement_group_id",
           "placement_group_id:f name:f creator_job_id:f state:f bundles:od is_detached:bdf "
           "stats:od topology_strategy:od topology_assignments:od strategy:d why:d"),
      make("nodes", "node_id",
           "node_id:f node_ip:f is_head_node:bf state:f state_message node_name:f "
           "resources_total:o labels:o start_time_ms:id end_time_ms:id"),
      make("workers", "worker_id",
           "worker_id:f is_alive:bf worker_type:f exit_type:f node_id:f ip:f pid:if exit_detail:d "
           "worker_launch_time_ms:id worker_launched_time_ms:id "
           "start_time_ms:id end_time_ms:id debugger_port:idf num_paused_threads:idf"),
      tasks(),
      make("objects", "object_id",
           "object_id:f object_size:if task_status:f attempt_number:if reference_type:f "
           "call_site:f type:f pid:if ip:f"),
      make("runtime_envs", "node_id",
           "runtime_env:of success:bf creation_time_ms:o node_id:f ref_cnt:id error:df"),
      make("cluster_events", "event_id",
           "severity:f time source_type:f message event_id:f custom_fields:od"),
  };
  return all;
}

}  // namespace

int Resource::column(std::string_view wanted) const {
  auto it = std::find_if(columns.begin(), columns.end(),
                         [&](const Column& c) { return c.name == wanted; });
  return it == columns.end() ? -1 : static_cast<int>(it - columns.begin());
}

std::string Resource::filterable() const {
  std::string names;
  for (const Column& column : columns) {
    if (column.filterable) names += (names.empty() ? "" : ", ") + column.name;
  }
  return names;
}

const Resource* find_resource(std::string_view name) {
  auto it = std::find_if(resources().begin(), resources().end(),
                         [&](const Resource& r) { return r.name == name; });
  return it == resources().end() ? nullptr : &*it;
}

}  // namespace rt::state
