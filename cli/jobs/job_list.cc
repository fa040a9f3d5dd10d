// `rayctl job list`: lists submitted jobs and drivers.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/jobs/job_common.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "common/base/json_text.h"
#include "common/base/readable.h"
#include "common/base/utf8.h"

namespace rt::cli {
namespace {

// `text` as a Python string literal. Without --format the command prints Ray's format, a Python
// list of JobDetails(...), which scripts parse.
std::string python_text(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\n' || c == '\t' || c == '\r') {
      out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
    } else {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
  }
  return printable(out) + "'";
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
  if (!value.is_object()) return json_text(value);
  for (const auto& [name, item] : value.items()) add(python_text(name) + ": " + python_value(item));
  return "{" + items + "}";
}

// A member of a Python enum, such as <JobStatus.RUNNING: 'RUNNING'>.
std::string python_member(const char* type, const api_json::Json& row, const char* field) {
  std::string name = text_of(row, field);
  return fmt::format("<{}.{}: '{}'>", type, name, name);
}

std::string driver_info(const api_json::Json& info) {
  if (!info.is_object()) return "None";
  std::string fields;
  for (const auto& [name, value] : info.items())
    fields += (fields.empty() ? "" : ", ") + name + "=" + python_value(value);
  return "DriverInfo(" + fields + ")";
}

std::string details(const api_json::Json& row) {
  std::string fields;
  for (const auto& [name, value] : row.items()) {
    std::string text = name == "type"          ? python_member("JobType", row, "type")
                       : name == "status"      ? python_member("JobStatus", row, "status")
                       : name == "driver_info" ? driver_info(value)
                                               : python_value(value);
    fields += (fields.empty() ? "" : ", ") + name + "=" + text;
  }
  return "JobDetails(" + fields + ")";
}

Words table_row(const api_json::Json& row) {
  std::string submission_id = text_of(row, "submission_id");
  return {submission_id.empty() ? text_of(row, "job_id") : submission_id,
          text_of(row, "type"),
          text_of(row, "status"),
          local_time(number_of(row, "start_time")),
          local_time(number_of(row, "end_time")),
          text_of(row, "entrypoint")};
}

Status show_jobs(const CommandLine& line) {
  RT_ASSIGN(auto server, connect_job_server(line));
  RT_ASSIGN(auto jobs, server->jobs());
  if (line.for_programs()) {
    print_data(line, api_json::Json(jobs));
    return {};
  }
  if (line.get("format") == "table") {
    std::vector<Words> rows = {{"ID", "TYPE", "STATUS", "STARTED", "ENDED", "ENTRYPOINT"}};
    for (const auto& job : jobs) rows.push_back(table_row(job));
    print("{}", table(rows));
    return {};
  }
  std::string text;
  for (const auto& job : jobs) text += (text.empty() ? "" : ",\n ") + details(job);
  print("[{}]\n", text);
  return {};
}

}  // namespace

int run_job_list(const Words& words) {
  CommandLine line("job list",
                   "Lists jobs, submitted ones and then drivers: as Python's list of JobDetails, a "
                   "table, JSON or YAML.");
  declare_job_options(line);
  line.format_option();
  if (auto code = line.parse(words)) return *code;
  return finish(show_jobs(line));
}

}  // namespace rt::cli
