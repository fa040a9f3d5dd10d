#include "cli/terminal/output.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "cli/terminal/print.h"
#include "cli/terminal/style.h"
#include "cli/terminal/yaml.h"
#include "common/base/readable.h"
#include "common/base/utf8.h"

namespace rt::cli {

namespace {

// Makes `text` printable, but keeps the escapes of painted() around it.
std::string shown_cell(const std::string& text) {
  const size_t begin = text.starts_with("\x1b[") ? text.find('m') : std::string::npos;
  constexpr std::string_view kEnd = "\x1b[0m";
  if (begin == std::string::npos || begin > 6 || !text.ends_with(kEnd) ||
      text.size() < begin + 1 + kEnd.size())
    return printable(text);
  return text.substr(0, begin + 1) +
         printable(
             std::string_view(text).substr(begin + 1, text.size() - begin - 1 - kEnd.size())) +
         std::string(kEnd);
}

}  // namespace

std::string table(std::vector<Words> rows) {
  std::vector<size_t> widths;
  for (auto& row : rows) {
    for (std::string& text : row) text = shown_cell(text);
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - columns_of(row[i]) + 2, ' ');
    }
    end_row(&out);
  }
  return out;
}

void end_row(std::string* text) {
  text->resize(text->find_last_not_of(' ') + 1);
  *text += '\n';
}

std::string boxed(const std::string& line) {
  std::string rule(line.size(), '-');
  return rule + "\n" + line + "\n" + rule + "\n";
}

std::string file_time(int64_t wall_ms) {
  return wall_ms <= 0 ? ""
                      : fmt::format("{:%Y-%m-%d_%H-%M-%S}",
                                    fmt::localtime(static_cast<std::time_t>(wall_ms / 1000)));
}

std::string data_text(const CommandLine& line, const api_json::Json& data) {
  return line.get("format") == "json"
             ? data.dump(2, ' ', false, api_json::Json::error_handler_t::replace) + "\n"
             : yaml_document(data);
}
void print_data(const CommandLine& line, const api_json::Json& data) {
  write_output(data_text(line, data));
}

void print_resources(const CommandLine& line, const api_json::Json& resources) {
  if (line.for_programs()) return print_data(line, resources);
  std::vector<Words> rows = {{"RESOURCE", "AMOUNT", ""}};
  for (const auto& [name, value] : resources.items()) {
    bool bytes = name == "memory" || name == "object_store_memory";
    rows.push_back({name, amount(value.get<double>()),
                    bytes ? "(" + binary_bytes(value.get<double>()) + ")" : ""});
  }
  write_output(table(rows));
}

Status check_writable(const std::string& path) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  const bool there = ::access(path.c_str(), F_OK) == 0;
  const bool good = there ? ::access(path.c_str(), W_OK) == 0
                          : ::access(directory.empty() ? "." : directory.c_str(), W_OK | X_OK) == 0;
  return good ? Status() : errno_error("cannot write " + path, errno);
}

}  // namespace rt::cli
