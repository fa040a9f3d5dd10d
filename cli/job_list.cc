#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/job_common.h"
#include "cli/output.h"
#include "common/base/ids.h"
#include "common/base/readable.h"

namespace rt::cli {
namespace {

// As a Python literal, for the contract's list of JobDetails(...).
std::string python_text(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + "'";
}

std::string python_value(const api_json::Json& value) {
  std::string items;
  auto add = [&items](const std::string& item) { items += (items.empty() ? "" : ", ") + item; };
  if (value.is_string()) return python_text(value.get<std::string>());
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_array()) {
    for (const auto& item : value) add(python_value(item));
    return "[" + items + "]";
  }
  if (!value.is_object()) return value.dump();
  for (const auto& [name, item] : value.items()) add(python_text(name) + ": " + python_value(item));
  return "{" + items + "}";
}

api_json::Json metadata_json(const proto::SubmittedJob& job) {
  auto metadata = api_json::Json::object();
  for (const auto& [name, value] : std::map<std::string, std::string>(job.metadata().begin(), job.metadata().end())) metadata[name] = value;
  return metadata;
}

api_json::Json runtime_env_json(const proto::SubmittedJob& job) {
  auto env = api_json::Json::parse(job.runtime_env_json(), nullptr, false);
  return env.is_object() ? env : api_json::Json::object();
}

std::string python_number(int64_t value) { return value == 0 ? "None" : std::to_string(value); }

std::string details(const proto::SubmittedJob& job) {
  std::string job_id = job.job_id().empty() ? "None" : python_text(to_hex(job.job_id()));
  return fmt::format(
      "JobDetails(type=<JobType.SUBMISSION: 'SUBMISSION'>, job_id={}, submission_id={}, status=<JobStatus.{}: '{}'>, entrypoint={}, message={}, "
      "error_type={}, start_time={}, end_time={}, metadata={}, runtime_env={}, driver_node_id={}, driver_exit_code={})",
      job_id, python_text(job.submission_id()), job.status(), job.status(), python_text(job.entrypoint()), python_text(job.message()),
      job.error_type().empty() ? "None" : python_text(job.error_type()), python_number(job.start_time_ms()), python_number(job.end_time_ms()),
      python_value(metadata_json(job)), python_value(runtime_env_json(job)),
      job.node_id().empty() ? "None" : python_text(to_hex(job.node_id())), job.exited() ? std::to_string(job.exit_code()) : "None");
}

api_json::Json job_json(const proto::SubmittedJob& job) {
  using api_json::Json;
  auto text_or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  auto time_or_null = [](int64_t time_ms) { return time_ms == 0 ? Json(nullptr) : Json(time_ms); };
  return {{"type", "SUBMISSION"},
          {"job_id", text_or_null(to_hex(job.job_id()))},
          {"submission_id", job.submission_id()},
          {"status", job.status()},
          {"entrypoint", job.entrypoint()},
          {"message", job.message()},
          {"error_type", text_or_null(job.error_type())},
          {"start_time", time_or_null(job.start_time_ms())},
          {"end_time", time_or_null(job.end_time_ms())},
          {"metadata", metadata_json(job)},
          {"runtime_env", runtime_env_json(job)},
          {"driver_node_id", text_or_null(to_hex(job.node_id()))},
          {"driver_exit_code", job.exited() ? Json(job.exit_code()) : Json(nullptr)}};
}

Status show(const CommandLine& line) {
  RT_ASSIGN(auto server, connect_job_server(line));
  RT_ASSIGN(auto submitted, server->jobs());
  if (line.for_programs()) {
    api_json::Json jobs = api_json::Json::array();
    for (const auto& job : submitted) jobs.push_back(job_json(job));
    print_data(line, jobs);
    return {};
  }
  if (line.get("format") == "table") {
    std::vector<Words> rows = {{"SUBMISSION ID", "STATUS", "STARTED", "ENDED", "ENTRYPOINT"}};
    for (const auto& job : submitted) rows.push_back({job.submission_id(), job.status(), local_time(job.start_time_ms()), local_time(job.end_time_ms()), job.entrypoint()});
    fmt::print("{}", table(rows));
    return {};
  }
  std::string text;
  for (const auto& job : submitted) text += (text.empty() ? "" : ",\n ") + details(job);
  fmt::print("[{}]\n", text);
  return {};
}

}  // namespace

int run_job_list(const Words& words) {
  CommandLine line("job list", "Lists submitted jobs: as Python's list of JobDetails, a table, JSON or YAML.");
  declare_job_options(line);
  line.format_option();
  if (auto code = line.parse(words)) return *code;
  return finish(show(line));
}

}  // namespace rt::cli
