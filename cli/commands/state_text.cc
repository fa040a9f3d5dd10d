#include "cli/commands/state_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

#include "cli/terminal/output.h"
#include "cli/terminal/yaml.h"
#include "common/base/json_text.h"
#include "common/base/utf8.h"
#include "observability/state/query.h"

namespace rt::cli {
namespace {

using api_json::Json;

std::string time_text(int64_t ms) {
  std::time_t seconds = ms / 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return fmt::format("{}.{:03}000", text, ms % 1000);
}

std::string size_text(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.3f} {}", bytes, kUnits[unit]);
}

void show_units(Json* resources) {
  if (!resources->is_object()) return;
  for (auto& [name, amount] : resources->get_ref<Json::object_t&>()) {
    if ((name == "memory" || name == "object_store_memory") && amount.is_number())
      amount = size_text(amount.get<double>());
  }
}

std::string heading(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string cell(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  std::string text = value.is_string() ? value.get<std::string>() : json_text(value);
  return printable(text);
}

size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// A table whose first column is the row's index and whose other columns are four blanks apart.
std::string indexed_table(const std::vector<Words>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      out.append(i == 0 ? 0 : i == 1 ? 2 : 4, ' ');
      out += row[i];
      out.append(widths[i] - width_of(row[i]), ' ');
    }
    end_row(&out);
  }
  return out;
}

std::string framed(const std::string& title, const std::string& stamp, const std::string& stats,
                   const std::string& table_title, const std::string& table) {
  const std::string rule(30, '-');
  return fmt::format("\n======== {}: {} ========\nStats:\n{}\n{}\n{}:\n{}\n{}\n", title, stamp,
                     rule, stats, table_title, rule, table);
}

std::string table_of(const Json& rows) {
  std::vector<Words> cells = {{""}};
  cells.reserve(rows.size() + 1);
  for (const auto& [name, value] : rows[0].items()) cells[0].push_back(heading(name));
  for (size_t i = 0; i < rows.size(); ++i) {
    Words& line = cells.emplace_back();
    line.reserve(cells[0].size());
    line.push_back(std::to_string(i));
    for (const auto& [name, value] : rows[i].items()) line.push_back(cell(value));
  }
  return indexed_table(cells);
}

std::string counts_text(const Json& counts) {
  std::string text;
  for (const auto& [name, count] : counts.items())
    text += (text.empty() ? "" : ", ") + fmt::format("{}: {}", printable(name), cell(count));
  return text;
}

// The totals of a summary, one line each; its groups are shown as a table.
std::string stats_of(const Json& summary) {
  Json stats = Json::object();
  for (const auto& [name, value] : summary.items()) {
    if (name.starts_with("total_") || name == "callsite_enabled")
      stats[name] =
          value.is_number_float() ? Json(fmt::format("{:.3f}", value.get<double>())) : value;
  }
  std::string text;
  for (const auto& [name, value] : stats.items())
    text += fmt::format("{}: {}\n", name,
                        value.is_string() ? value.get<std::string>() : json_text(value));
  return text;
}

std::string objects_tables(const Json& groups) {
  std::string out;
  for (const auto& [site, group] : groups.items()) {
    std::vector<Words> cells = {{""}, {"0"}};
    for (const auto& [name, value] : group.items()) {
      cells[0].push_back(heading(name));
      cells[1].push_back(value.is_object()         ? counts_text(value)
                         : value.is_number_float() ? fmt::format("{:.3f}", value.get<double>())
                                                   : cell(value));
    }
    out += site + "\n" + indexed_table(cells) + "\n";
  }
  return out;
}

}  // namespace

Json humanized(Json row) {
  if (!row.is_object()) return row;
  for (auto& [name, value] : row.get_ref<Json::object_t&>()) {
    bool is_time = name.ends_with("_time_ms") || name == "start_time" || name == "end_time";
    if (value.is_number_integer() && is_time && value.get<int64_t>() > 0) {
      value = time_text(value.get<int64_t>());
    } else if (name == "object_size" && value.is_number_integer() && value.get<int64_t>() >= 0) {
      value = size_text(value.get<double>());
    } else if (name == "resources_total" || name == "required_resources") {
      show_units(&value);
    } else if (name == "events" && value.is_array()) {
      for (Json& event : value) {
        if (event.is_object() && event.contains("created_ms") &&
            event["created_ms"].is_number_integer())
          event["created_ms"] = time_text(event["created_ms"].get<int64_t>());
      }
    }
  }
  return row;
}

std::string list_text(Json rows, const std::string& format, bool detail, const std::string& stamp) {
  Json shown = Json::array();
  for (Json& row : rows) shown.push_back(humanized(std::move(row)));
  if (format == "json") return json_text(shown) + "\n";
  if (format == "yaml") return yaml_document(shown);
  if (shown.empty()) return "No resource in the cluster\n";
  if (detail && format == "default") return yaml_document(shown);
  return framed("List", stamp, fmt::format("Total: {}\n", shown.size()), "Table", table_of(shown));
}

std::string summary_text(const std::string& resource, const Json& summary,
                         const std::string& stamp) {
  std::string title = resource;
  title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  std::replace(title.begin(), title.end(), '_', ' ');
  const Json groups = summary.value("summary", Json::object());
  std::string by = resource == "tasks"              ? "func_name"
                   : resource == "actors"           ? "class"
                   : resource == "placement_groups" ? "strategy"
                                                    : "callsite",
              table;
  if (groups.empty()) {
    table = "No resource in the cluster\n";
  } else if (resource == "objects") {
    table = objects_tables(groups);
  } else {
    Json rows = Json::array();
    for (const auto& [name, group] : groups.items()) {
      // nlohmann::json sorts its keys: the columns come in alphabetical order.
      nlohmann::json sorted;
      for (const auto& [column, value] : group.items())
        sorted[column] = column == "state_counts" ? counts_text(value) : cell(value);
      Json row = Json::object();
      for (const auto& [column, value] : sorted.items()) row[column] = value.get<std::string>();
      rows.push_back(row);
    }
    table = table_of(rows);
  }
  return framed(title + " Summary", stamp, stats_of(summary),
                fmt::format("Table (group by {})", by), table);
}

std::string log_listing(const std::string& place, const Json& files) {
  return place + "\n" + (files.empty() ? "No log file matches\n" : yaml_lines(files));
}

Result<state::Filter> parse_filter(const std::string& text) {
  size_t equal = text.find('=');
  bool is = equal == std::string::npos || equal == 0 || text[equal - 1] != '!';
  std::string key = equal == std::string::npos ? "" : text.substr(0, is ? equal : equal - 1);
  if (key.empty())
    return make_error(
        Code::kInvalid,
        fmt::format("The filter '{}' has no predicate: it is \"key=value\" or \"key!=value\"",
                    text.substr(0, 200)));
  return state::Filter{key, is, text.substr(equal + 1)};
}

}  // namespace rt::cli
