#include "common/events/timeline_rest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/events/task_digest.h"

namespace rt {
namespace {

using Json = nlohmann::ordered_json;

// "type\nvalue\ntraceback" as three texts.
Json failure_of(const std::string& error) {
  size_t type_end = std::min(error.find('\n'), error.size());
  std::string rest = error.substr(std::min(type_end + 1, error.size()));
  size_t value_end = std::min(rest.find('\n'), rest.size());
  return {{"type", error.substr(0, type_end)}, {"value", rest.substr(0, value_end)}, {"traceback", rest.substr(std::min(value_end + 1, rest.size()))}};
}

}  // namespace

void RestTimeline::add_text(const std::string& text, std::string* out) {
  *out += std::exchange(first_, false) ? "[" : ",\n";
  *out += text;
}

RestTimeline::Thread& RestTimeline::thread_of(const TaskEventBatchData& batch) {
  int process = processes_.try_emplace(batch.node_ip, static_cast<int>(processes_.size())).first->second;
  auto [it, added] = threads_.try_emplace(batch.worker_hex);
  if (added) it->second = {process, static_cast<int>(threads_.size()) - 1, (batch.is_driver ? "driver:" : "worker:") + batch.worker_hex};
  return it->second;
}

void RestTimeline::add_event(const TaskEventBatchData& batch, const TaskEvent& event, const Thread& thread, std::string* out) {
  const std::string& function = batch.strings[event.function];
  const Json common = {{"task_id", event.task.hex()}, {"job_id", job_of(event.task).hex()}, {"attempt_number", event.attempt}, {"func_or_class_name", function},
                       {"actor_id", is_actors(event.kind) ? Json(actor_of(event.task).hex()) : Json()}};
  auto span = [&](const std::string& category, const std::string& name, const char* colour, int64_t at_us, int64_t took_us, Json args) {
    args.update(common);
    Json one = {{"cat", category}, {"name", name}, {"pid", thread.process}, {"tid", thread.number}, {"ts", static_cast<double>(at_us)}, {"dur", static_cast<double>(took_us)}, {"cname", colour}};
    one["args"] = std::move(args);
    one["ph"] = "X";
    add_text(one.dump(-1, ' ', true, Json::error_handler_t::replace), out);
  };
  if (event.kind == TaskEvent::kSubmission) return span("submit_task", "submit_task", "background_memory_dump", event.start_us, event.execute_us, Json::object());
  Json failure = event.error ? failure_of(batch.strings[event.error]) : Json::object();
  const std::string category = "task::" + function, &name = batch.strings[event.name];
  const bool failed_constructor = event.kind == TaskEvent::kActorCreation && event.error;
  int64_t total_us = int64_t{event.deserialize_us} + event.execute_us + event.store_us, at_us = event.start_us;
  span(category, failed_constructor ? category : name, "generic_work", at_us, total_us, failed_constructor ? failure : Json{{"name", name}});
  span("task:deserialize_arguments", "task:deserialize_arguments", "rail_load", at_us, event.deserialize_us, Json::object());
  at_us += event.deserialize_us;
  span("task:execute", "task:execute", "rail_animation", at_us, event.execute_us, failure);
  at_us += event.execute_us;
  if (!event.error) span("task:store_outputs", "task:store_outputs", "rail_idle", at_us, event.store_us, Json::object());
}

std::string RestTimeline::add(const TaskEventBatchData& batch) {
  std::string out;
  for (const TaskEvent& event : batch.events) {
    if (event.kind == TaskEvent::kOwnerFailedTask || event.kind == TaskEvent::kOwnerFailedMethod) continue;      // nothing ran
    if (!job_id_.empty() && job_of(event.task).hex() != job_id_) continue;
    add_event(batch, event, thread_of(batch), &out);
  }
  return out;
}

std::string RestTimeline::end() {
  std::string out;
  auto name = [&](const char* what, int process, Json thread, const std::string& text) {
    Json one = {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}};
    one["args"] = Json{{"name", text}};
    add_text(one.dump(-1, ' ', true, Json::error_handler_t::replace), &out);
  };
  for (const auto& [ip, number] : processes_) name("process_name", number, nullptr, "Node " + ip);
  for (const auto& [id, thread] : threads_) name("thread_name", thread.process, thread.number, thread.name);
  return out + (first_ ? "[]" : "]");
}

}  // namespace rt
