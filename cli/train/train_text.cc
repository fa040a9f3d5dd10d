#include "cli/train/train_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/terminal/style.h"
#include "cli/train/train_ranks_text.h"
#include "common/base/json_text.h"
#include "common/base/readable.h"
#include "common/base/utf8.h"

namespace rt::cli {
namespace {

using api_json::Json;

constexpr int64_t kNsPerMs = 1'000'000;
constexpr size_t kMostNames = 20;

std::string duration_text(int64_t ms) {
  const int64_t s = std::max<int64_t>(0, ms) / 1000;
  if (s < 60) return fmt::format("{:.1f}s", static_cast<double>(std::max<int64_t>(0, ms)) / 1000);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
}

// How long a run or an attempt has lasted; empty if its end is not known.
std::string lasted(const Json& one, bool ended, int64_t now_ms) {
  const int64_t start_ms = number_of(one, "start_time_ns") / kNsPerMs,
                end_ms = number_of(one, "end_time_ns") / kNsPerMs;
  if (end_ms > 0) return duration_text(end_ms - start_ms);
  return ended ? "" : duration_text(now_ms - start_ms);
}

bool is_bad(const std::string& status) {
  return status == "ERRORED" || status == "ABORTED" || status == "DEAD";
}

std::string status_text(const std::string& status) {
  return is_bad(status) ? painted(status, Ink::kBad)
         : status == "RUNNING" || status == "FINISHED" || status == "ALIVE"
             ? painted(status, Ink::kGood)
             : painted(status, Ink::kWarning);
}

bool has_ended(const Json& one) {
  const std::string status = text_of(one, "status");
  return status == "FINISHED" || status == "ERRORED" || status == "ABORTED";
}

std::string joined(const Json& items) {
  std::string text;
  if (!items.is_array()) return text;
  for (const Json& item : items) {
    text += text.empty() ? "" : ",";
    text += item.is_string() ? item.get<std::string>() : json_text(item);
  }
  return text;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Words worker_row(const Json& worker) {
  return {std::to_string(number_of(worker, "world_rank")),
          std::to_string(number_of(worker, "local_rank")),
          std::to_string(number_of(worker, "node_rank")),
          text_of(worker, "node_ip"),
          text_of(worker, "node_id").substr(0, 12),
          std::to_string(number_of(worker, "pid")),
          joined(worker.value("gpu_ids", Json())),
          status_text(text_of(worker, "status"))};
}

std::string attempt_text(const Json& attempt, int64_t now_ms) {
  const std::string time = lasted(attempt, has_ended(attempt), now_ms);
  std::string text = fmt::format("\nAttempt {}: {}, started {}{}\n", attempt_number(attempt),
                                 status_text(text_of(attempt, "status")),
                                 local_time(number_of(attempt, "start_time_ns") / kNsPerMs),
                                 time.empty() ? "" : ", lasted " + time);
  if (std::string detail = text_of(attempt, "status_detail"); !detail.empty())
    text += "  " + printable(first_line(detail)) + "\n";
  text += train_missing_text(attempt);
  const Json& workers = attempt["workers"];
  if (workers.empty()) return text;
  std::vector<Words> rows = {
      {"RANK", "LOCAL", "NODE RANK", "ADDRESS", "NODE", "PID", "GPUS", "STATUS"}};
  for (const Json& worker : workers) rows.push_back(worker_row(worker));
  return text + table(rows);
}

// The last value of each metric: "loss=0.25 epoch=3".
std::string last_values(const Json& metrics) {
  std::string text;
  auto columns = metrics.find("metrics");
  if (columns == metrics.end() || !columns->is_object()) return text;
  for (const auto& [name, values] : columns->items()) {
    if (!values.is_array() || values.empty() || !values.back().is_number()) continue;
    text += fmt::format("{}{}={:g}", text.empty() ? "" : " ", name, values.back().get<double>());
  }
  return text;
}

// How long each rank has waited so far, and for what.
std::string times_text(const Json& metrics) {
  auto ranks = metrics.find("ranks");
  if (ranks == metrics.end() || !ranks->is_array() || ranks->empty()) return {};
  std::vector<Words> rows = {
      {"RANK", "STEPS", "A STEP", "REPORT", "FOR OTHERS", "UPLOAD", "COLLECTIVE", "DATA"}};
  auto seconds = [](const Json& rank, const char* name) {
    auto value = rank.find(name);
    return value == rank.end() || !value->is_number()
               ? std::string()
               : fmt::format("{:.3f}s", value->get<double>());
  };
  for (const Json& rank : *ranks) {
    if (!rank.is_object()) continue;
    rows.push_back({std::to_string(number_of(rank, "world_rank")),
                    rank.contains("steps") ? std::to_string(number_of(rank, "steps")) : "",
                    seconds(rank, "step_s"), seconds(rank, "report_s"), seconds(rank, "sync_s"),
                    seconds(rank, "transfer_s"), seconds(rank, "collective_s"),
                    seconds(rank, "data_s")});
  }
  return "\nSteps of the ranks by their last report and the time of one, and time spent in "
         "report(), in "
         "it waiting for\nother ranks and uploading, in ray.train.collective, and waiting for "
         "batches:\n" +
         table(rows);
}

}  // namespace

std::string train_list_text(const Json& runs, int64_t now_ms) {
  std::vector<Words> rows = {
      {"NAME", "STATUS", "ATTEMPTS", "RANKS", "STARTED", "LASTED", "JOB", "ID"}};
  for (const Json& run : runs) {
    const Json* attempt = find_attempt(run, 0);
    rows.push_back({text_of(run, "name"), status_text(text_of(run, "status")),
                    std::to_string(run["attempts"].size()),
                    std::to_string(attempt ? (*attempt)["workers"].size() : 0),
                    local_time(number_of(run, "start_time_ns") / kNsPerMs),
                    lasted(run, has_ended(run), now_ms), text_of(run, "job_id"),
                    text_of(run, "id").substr(0, 12)});
  }
  return table(rows);
}

std::string train_run_text(const Json& run, const Json& metrics, int64_t now_ms) {
  const std::string time = lasted(run, has_ended(run), now_ms);
  std::string text = fmt::format("Run {} ({}): {}\n", printable(text_of(run, "name")),
                                 text_of(run, "id"), status_text(text_of(run, "status")));
  if (std::string detail = text_of(run, "status_detail"); !detail.empty())
    text += "  " + printable(first_line(detail)) + "\n";
  text += fmt::format("  started {}{}, job {}, controller {}\n",
                      local_time(number_of(run, "start_time_ns") / kNsPerMs),
                      time.empty() ? "" : ", lasted " + time, text_of(run, "job_id"),
                      text_of(run, "controller_actor_id"));
  if (std::string last = last_values(metrics); !last.empty())
    text += "  last report: " + printable(last) + "\n";
  for (const Json& attempt : run["attempts"]) text += attempt_text(attempt, now_ms);
  return text + times_text(metrics);
}

int64_t attempt_number(const Json& attempt) {
  const std::string id = text_of(attempt, "attempt_id");
  const std::string digits = id.substr(id.rfind('_') + 1);
  int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

const Json* find_attempt(const Json& run, int64_t number) {
  const Json* found = nullptr;
  for (const Json& attempt : run["attempts"]) {
    if (number > 0 ? attempt_number(attempt) == number : !attempt["workers"].empty())
      found = &attempt;
  }
  return found;
}

std::string train_log_line(const std::string& line) {
  const Json entry = parse_ordered_json(line);
  if (!entry.is_object() || !entry.contains("message")) return line;
  return fmt::format("{} {} {}", text_of(entry, "asctime"), text_of(entry, "levelname"),
                     text_of(entry, "message"));
}

std::string names_text(const Json& runs) {
  Words names;
  for (const Json& run : runs) {
    std::string name = printable(text_of(run, "name"));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.empty()) return "there are no training runs";
  std::string text = "there are: ";
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    text += (i ? ", " : "") + names[i];
  return names.size() > kMostNames ? text + fmt::format(" and {} more", names.size() - kMostNames)
                                   : text;
}

}  // namespace rt::cli
