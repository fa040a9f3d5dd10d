#include "observability/state/train_runs.h"

#include <algorithm>

#include "common/base/ids.h"
#include "common/base/json_text.h"
#include "observability/state/lookups.h"
#include "observability/state/sources.h"

namespace rt::state {
namespace {

using Stub = proto::HeadService::Stub;

Error no_record(const std::string& key) {
  return make_error(Code::kNotFound, "there is no record of training run " + key);
}

constexpr char kNothingReported[] = R"({"time_ms": [], "reports": [], "metrics": {}, "ranks": []})";

bool is_good_attempt(const Json& attempt) {
  if (!attempt.is_object() || !has_text(attempt, "status") || !attempt.contains("workers") ||
      !attempt["workers"].is_array())
    return false;
  return std::all_of(attempt["workers"].begin(), attempt["workers"].end(), [](const Json& worker) {
    return worker.is_object() && has_text(worker, "status") && has_text(worker, "node_id");
  });
}

// Returns whether the run names its controller by a valid id: the head is asked for the controller,
// and it refuses malformed ids.
bool has_controller(const Json& run) {
  return ActorId::is_valid(from_hex(text_of(run, "controller_actor_id")));
}

bool is_living(const proto::GetActorReply& controller) {
  return controller.found() && controller.actor().state() != proto::ACTOR_DEAD;
}

// Ends an attempt that was still open when its controller ended, at that time: its workers are
// dead.
void end_attempt(const Json& end_time_ns, Json* attempt) {
  if (!(*attempt)["end_time_ns"].is_null()) return;
  const std::string status = (*attempt)["status"];
  if (status == "PENDING" || status == "RUNNING") (*attempt)["status"] = "ABORTED";
  (*attempt)["end_time_ns"] = end_time_ns;
  (*attempt)["waiting"] = nullptr;
  for (Json& worker : (*attempt)["workers"]) worker["status"] = "DEAD";
}

// Returns the record of one run as its controller wrote it, or kNotFound if there is none that can
// be read.
Result<Answer> read_record(Sources& sources, const std::string& key) {
  RT_ASSIGN(auto text, kv_value(sources, kTrainRuns, key));
  if (!text) return no_record(key);
  Json run = parse_train_run(*text);
  if (run.is_null())
    return make_error(Code::kNotFound, "the record of training run " + key + " cannot be read");
  return Answer{std::move(run)};
}

// Returns the record of one run as train_runs() shows it.
Result<Answer> read_run(Sources& sources, const std::string& key) {
  RT_ASSIGN(auto run, read_record(sources, key));
  if (!is_under_way(run.json)) return run;
  RT_ASSIGN(auto controller, actor_info(sources, text_of(run.json, "controller_actor_id")));
  if (is_living(controller)) return run;
  // Since the record was read the run may have ended, and its controller with it. A controller
  // writes its last record before it ends, so the record that is read now is the last one.
  RT_ASSIGN(run, read_record(sources, key));
  settle_train_run(controller, &run.json);
  return run;
}

}  // namespace

Json parse_train_run(const std::string& text) {
  Json run = parse_ordered_json(text);
  if (!run.is_object() || !has_text(run, "id") || !has_text(run, "name") ||
      !has_text(run, "status") || !has_controller(run) || !run.contains("attempts") ||
      !run["attempts"].is_array() ||
      !std::all_of(run["attempts"].begin(), run["attempts"].end(), is_good_attempt))
    return {};
  return run;
}

bool is_under_way(const Json& run) {
  const std::string status = run["status"];
  return status != "FINISHED" && status != "ERRORED" && status != "ABORTED";
}

void settle_train_run(const proto::GetActorReply& controller, Json* run) {
  if (!is_under_way(*run) || is_living(controller)) return;
  const proto::ActorInfo& actor = controller.actor();
  (*run)["status"] = "ABORTED";
  (*run)["status_detail"] = controller.found() && !actor.death().message().empty()
                                ? "its controller ended: " + actor.death().message()
                                : "its controller ended";
  const Json end = actor.end_time_ms() > 0 ? Json(actor.end_time_ms() * 1'000'000) : Json();
  (*run)["end_time_ns"] = end;
  for (Json& attempt : (*run)["attempts"]) end_attempt(end, &attempt);
}

Json newest_first(std::vector<Json> runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const Json& a, const Json& b) {
    return number_of(a, "start_time_ns") > number_of(b, "start_time_ns");
  });
  Json all = Json::array();
  for (Json& run : runs) all.push_back(std::move(run));
  return all;
}

const Json* find_train_run(const Json& runs, const std::string& word) {
  const Json* begins = nullptr;
  int count = 0;
  for (const Json& run : runs) {
    if (text_of(run, "id") == word) return &run;
  }
  for (const Json& run : runs) {
    if (text_of(run, "name") == word) return &run;
    if (word.empty() || !text_of(run, "id").starts_with(word)) continue;
    begins = &run;
    ++count;
  }
  return count == 1 ? begins : nullptr;
}

Result<Answer> train_runs(const Cluster& cluster, int64_t timeout_us) {
  RT_ASSIGN(auto sources,
            Sources::connect(cluster.head_address, cluster.token, timeout_us, cluster.connect_us));
  proto::KvListRequest all;
  all.set_ns(kTrainRuns);
  RT_ASSIGN(auto listed, sources->ask_head(&Stub::KvList, all));
  std::vector<Json> runs;
  for (const std::string& key : listed.keys()) {
    auto run = read_run(*sources, key);
    // The record was removed meanwhile, or cannot be read: the other runs are still listed.
    if (!run && run.error().code == Code::kNotFound) continue;
    if (!run) return run.error();
    runs.push_back(std::move(run->json));
  }
  Json answer = Json::object();
  answer["train_runs"] = newest_first(std::move(runs));
  return Answer{std::move(answer)};
}

Result<Answer> train_run(const Cluster& cluster, const std::string& run_id, int64_t timeout_us) {
  RT_ASSIGN(auto sources,
            Sources::connect(cluster.head_address, cluster.token, timeout_us, cluster.connect_us));
  return read_run(*sources, run_id);
}

Result<Answer> train_metrics(const Cluster& cluster, const std::string& run_id,
                             int64_t timeout_us) {
  RT_ASSIGN(auto sources,
            Sources::connect(cluster.head_address, cluster.token, timeout_us, cluster.connect_us));
  RT_ASSIGN(auto text, kv_value(*sources, kTrainMetrics, run_id));
  if (!text) {
    RT_ASSIGN(auto run, kv_value(*sources, kTrainRuns, run_id));
    if (!run) return no_record(run_id);
    text = kNothingReported;
  }
  Json metrics = parse_ordered_json(*text);
  if (!metrics.is_object())
    return make_error(Code::kNotFound, "the metrics of training run " + run_id + " cannot be read");
  return Answer{std::move(metrics)};
}

}  // namespace rt::state
