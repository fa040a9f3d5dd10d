#include "observability/events/timeline.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/json_text.h"
#include "observability/events/task_digest.h"

namespace rt {
namespace {

// Bytes that are not UTF-8 become replacement characters, so that the trace always loads.
template <class Json>
std::string literal_of(const Json& value) {
  return ascii_json_text(value);
}

std::string json_literal(std::string_view text) { return literal_of(nlohmann::json(text)); }

std::string inside_literal(std::string_view text) {
  const std::string literal = json_literal(text);
  return literal.substr(1, literal.size() - 2);
}

// The extra data of a span, which the user's program supplied.
struct Extra {
  // `members` are those of its args; `name` is a JSON literal to show in place of the span's type,
  // or "" if there is none.
  std::string members, name;
  std::optional<std::string> colour;
};

// Returns an empty Extra for text that is no JSON object, or has so many brackets that parsing it
// recursively could overflow the stack.
Extra parse_extra(const std::string& text) {
  constexpr int64_t kMostBrackets = 1000;
  Extra extra;
  if (std::count_if(text.begin(), text.end(), [](char c) { return c == '{' || c == '['; }) >
      kMostBrackets)
    return extra;
  const auto object = parse_ordered_json(text);
  if (!object.is_object()) return extra;
  for (const auto& [key, value] : object.items()) {
    if (key == "name" && value.is_string()) extra.name = literal_of(value);
    if (key == "cname" && value.is_string()) extra.colour = value.get<std::string>();
    extra.members += fmt::format("{}{}:{}", extra.members.empty() ? "" : ",", json_literal(key),
                                 literal_of(value));
  }
  return extra;
}

// Removes the first line of `text`, with its newline, and returns the line.
std::string_view take_line(std::string_view& text) {
  const auto end = std::find(text.begin(), text.end(), '\n');
  const std::string_view line(text.begin(), end);
  text.remove_prefix(line.size() + (end == text.end() ? 0 : 1));
  return line;
}

// The JSON members of an error "type\nvalue\ntraceback".
std::string failure_members(std::string_view error) {
  const std::string_view type = take_line(error), value = take_line(error);
  return fmt::format(R"("type":{},"value":{},"traceback":{})", json_literal(type),
                     json_literal(value), json_literal(error));
}

// The colour for a type of span. The types and colours are those of Ray.
std::string_view colour_of(std::string_view type) {
  static constexpr std::pair<std::string_view, std::string_view> kColours[] = {
      {"submit_task", "background_memory_dump"},
      {"ray.get", "good"},
      {"ray.put", "terrible"},
      {"ray.wait", "vsync_highlight_color"},
      {"wait_for_function", "detailed_memory_dump"},
      {"fetch_and_run_function", "detailed_memory_dump"},
      {"register_remote_function", "detailed_memory_dump"},
      {"task", "rail_response"},
      {"task:deserialize_arguments", "rail_load"},
      {"task:execute", "rail_animation"},
      {"task:store_outputs", "rail_idle"},
      {"worker_idle", "cq_build_abandoned"}};
  const auto* found = std::find_if(std::begin(kColours), std::end(kColours),
                                   [&](const auto& known) { return known.first == type; });
  return found == std::end(kColours) ? "generic_work" : found->second;
}

// Whether the event also yields the mark of its submission. A task has one submission, which is
// shown with its first attempt, or the first start of an actor, unless the owner recorded it
// itself.
bool marks_submission(const TaskEvent& event) {
  const bool first =
      event.attempt == 0 && (event.kind != TaskEvent::kActorCreation || lead_of(event.task) <= 1);
  return first && event.created_us && !event.submission_recorded &&
         event.kind != TaskEvent::kSpan && (event.owner || is_recorded_by_owner(event.kind));
}

int64_t end_of(const TaskEvent& event) {
  return event.start_us + event.deserialize_us + event.execute_us + event.store_us;
}

}  // namespace

// Writes the events of one batch. JSON literals are cached by index of string, because a batch
// repeats few names many times.
class Timeline::Batch {
 public:
  Batch(Timeline& trace, const TaskEventBatchData& batch, std::string* json)
      : trace_(trace),
        batch_(batch),
        json_(json),
        thread_(trace.thread_of(batch.node_ip, batch.worker_hex, batch.is_driver)),
        literals_(batch.strings.size()),
        categories_(literals_.size()),
        owners_(literals_.size()) {}

  void add(const TaskEvent& event) {
    common_ = trace_.options_.numbered ? common_members(event) : "";
    if (event.kind == TaskEvent::kSpan) return recorded_span(event);
    // The submission belongs to the owner's thread. Events of tasks that never ran were recorded by
    // the owner itself, so that is this process.
    if (marks_submission(event))
      span(is_recorded_by_owner(event.kind) ? thread_ : owner_of(event.owner), kSubmit, kSubmit,
           colour_of("submit_task"), event.created_us, 1, "");
    if (is_recorded_by_owner(event.kind)) return;
    const std::string failure = event.error ? failure_members(batch_.strings[event.error]) : "";
    const bool failed_constructor = event.kind == TaskEvent::kActorCreation && event.error;
    const std::string& category = category_of(event.function);
    const std::string& name = literal_of(event.name);
    span(thread_, category, failed_constructor ? category : name, "generic_work", event.start_us,
         end_of(event) - event.start_us, failed_constructor ? failure : body_members(name, event));
    int64_t at_us = event.start_us;
    span(thread_, kDeserialize, kDeserialize, "rail_load", at_us, event.deserialize_us, "");
    at_us += event.deserialize_us;
    span(thread_, kExecute, kExecute, "rail_animation", at_us, event.execute_us, failure);
    at_us += event.execute_us;
    if (!event.error) span(thread_, kStore, kStore, "rail_idle", at_us, event.store_us, "");
    if (trace_.options_.arrows && event.owner && event.created_us) arrow(event);
  }

 private:
  static constexpr std::string_view kSubmit = R"("submit_task")",
                                    kDeserialize = R"("task:deserialize_arguments")",
                                    kExecute = R"("task:execute")",
                                    kStore = R"("task:store_outputs")";

  void begin() { *json_ += std::exchange(trace_.first_, false) ? "[" : ",\n"; }

  void span(const Thread& thread, std::string_view category, std::string_view name,
            std::string_view colour, int64_t ts_us, int64_t dur_us, std::string_view args) {
    begin();
    auto out = std::back_inserter(*json_);
    if (trace_.options_.numbered) {
      fmt::format_to(
          out,
          FMT_COMPILE(
              R"({{"cat":{},"name":{},{},"ts":{}.0,"dur":{}.0,"cname":"{}","args":{{{}{}{}}},"ph":"X"}})"),
          category, name, thread.members, ts_us, dur_us, colour, args, args.empty() ? "" : ",",
          common_);
    } else {
      fmt::format_to(
          out,
          FMT_COMPILE(
              R"({{"cat":{},"name":{},{},"ts":{}.0,"dur":{}.0,"ph":"X","cname":"{}","args":{{{}}}}})"),
          category, name, thread.members, ts_us, dur_us, colour, args);
    }
  }

  void recorded_span(const TaskEvent& event) {
    const std::string& type = batch_.strings[event.name];
    const Extra& extra = extra_of(event.call_site);
    std::string colour(colour_of(type));
    if (extra.colour)
      // Shape B takes "cname" for a type of span, shape A shows it unchanged.
      colour = trace_.options_.numbered ? std::string(colour_of(*extra.colour))
                                        : inside_literal(*extra.colour);
    const std::string& category = literal_of(event.name);
    span(thread_, category, extra.name.empty() ? category : extra.name, colour, event.start_us,
         event.execute_us, extra.members);
  }

  void arrow(const TaskEvent& event) {
    const Thread& owner = owner_of(event.owner);
    const int64_t id = ++trace_.arrows_;
    end_of_arrow(owner, R"("s")", id, event.created_us);
    end_of_arrow(thread_, R"("f","bp":"e")", id, event.start_us);
  }

  void end_of_arrow(const Thread& thread, std::string_view phase, int64_t id, int64_t ts_us) {
    begin();
    fmt::format_to(
        std::back_inserter(*json_),
        FMT_COMPILE(R"({{"cat":"submission","name":"submission",{},"ts":{}.0,"ph":{},"id":{}}})"),
        thread.members, ts_us, phase, id);
  }

  std::string body_members(const std::string& name, const TaskEvent& event) const {
    if (trace_.options_.numbered) return R"("name":)" + name;
    return fmt::format(FMT_COMPILE(R"("name":{},"task_id":"{}")"), name, event.task.hex());
  }

  std::string common_members(const TaskEvent& event) {
    const bool in_actor = event.kind == TaskEvent::kSpan &&
                          !same_tail(event.task, driver_task_id(job_of(event.task)));
    const std::string actor = in_actor || is_actor_task(event.kind)
                                  ? fmt::format(R"("{}")", actor_of(event.task).hex())
                                  : "null";
    return fmt::format(
        FMT_COMPILE(
            R"("task_id":"{}","job_id":"{}","attempt_number":{},"func_or_class_name":{},"actor_id":{})"),
        event.task.hex(), job_of(event.task).hex(), event.attempt, literal_of(event.function),
        actor);
  }

  const std::string& literal_of(uint32_t index) {
    if (!literals_[index]) literals_[index] = json_literal(batch_.strings[index]);
    return *literals_[index];
  }

  const std::string& category_of(uint32_t index) {
    if (!categories_[index]) categories_[index] = json_literal("task::" + batch_.strings[index]);
    return *categories_[index];
  }

  const Extra& extra_of(uint32_t index) {
    auto [known, is_new] = extras_.try_emplace(index);
    if (is_new) known->second = parse_extra(batch_.strings[index]);
    return known->second;
  }

  const Thread& owner_of(uint32_t index) {
    if (!owners_[index]) {
      std::string_view owner = batch_.strings[index];
      const WorkerId id = WorkerId::from_binary(owner.substr(0, WorkerId::kSize));
      owners_[index] =
          &trace_.thread_of(std::string(owner.substr(std::min(owner.size(), WorkerId::kSize))),
                            id.hex(), !job_of_driver(id).is_nil());
    }
    return *owners_[index];
  }

  Timeline& trace_;
  const TaskEventBatchData& batch_;
  std::string* const json_;
  const Thread& thread_;
  std::vector<std::optional<std::string>> literals_, categories_;
  std::unordered_map<uint32_t, Extra> extras_;  // by index of string; few strings are extra data
  std::vector<const Thread*> owners_;
  std::string common_;  // in shape B, the members that all events of the current task have
};

const Timeline::Thread& Timeline::thread_of(const std::string& node_ip,
                                            const std::string& worker_hex, bool is_driver) {
  return named_thread(node_ip, (is_driver ? "driver:" : "worker:") + worker_hex);
}

const Timeline::Thread& Timeline::named_thread(const std::string& process, std::string name) {
  auto [it, added] = threads_.try_emplace(name);
  Thread& thread = it->second;
  if (!added) return thread;
  thread.process =
      processes_.try_emplace(process, static_cast<int>(processes_.size())).first->second;
  thread.number = static_cast<int>(threads_.size()) - 1;
  thread.members =
      options_.numbered
          ? fmt::format(R"("pid":{},"tid":{})", thread.process, thread.number)
          : fmt::format(R"("pid":{},"tid":{})", json_literal(process), json_literal(name));
  thread.name = std::move(name);
  return thread;
}

bool Timeline::wants(const TaskEvent& event) const {
  return (!is_recorded_by_owner(event.kind) || marks_submission(event)) &&
         (!options_.job || job_of(event.task) == *options_.job) &&
         end_of(event) >= options_.since_us;
}

void Timeline::add(const TaskEventBatchData& batch, std::string* json) {
  write(batch, json, [] { return true; });
}

bool Timeline::add(const TaskEventBatchData& batch, size_t piece_bytes,
                   const std::function<bool(const std::string&)>& take) {
  std::string json;
  auto hand_over = [&](size_t least) {
    if (json.size() < least) return true;
    if (!take(json)) return false;
    json.clear();
    return true;
  };
  return write(batch, &json, [&] { return hand_over(piece_bytes); }) && hand_over(1);
}

template <typename AfterEach>
bool Timeline::write(const TaskEventBatchData& batch, std::string* json, AfterEach after_each) {
  std::optional<Batch> writer;  // made late, so that a process without wanted events is not named
  for (const TaskEvent& event : batch.events) {
    if (!wants(event)) continue;
    if (!writer) writer.emplace(*this, batch, json);
    writer->add(event);
    if (event.kind != TaskEvent::kSpan && !is_recorded_by_owner(event.kind)) ++shown_;
    if (!after_each()) return false;
  }
  return true;
}

void Timeline::end(std::string* json) {
  auto name = [&](const char* what, int process, const std::string& thread,
                  const std::string& text) {
    *json += fmt::format(R"({}{{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})",
                         std::exchange(first_, false) ? "[" : ",\n", what, process, thread,
                         json_literal(text));
  };
  if (options_.numbered) {
    for (const auto& [process, number] : processes_)
      name("process_name", number, "null", process == kGroupProcess ? process : "Node " + process);
    for (const auto& [ignored, thread] : threads_)
      name("thread_name", thread.process, std::to_string(thread.number), thread.name);
  }
  *json += first_ ? "[]\n" : "]\n";
}

}  // namespace rt
