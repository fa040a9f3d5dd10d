// Formats results for a terminal: tables, boxes, and JSON or YAML for programs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/terminal/command_line.h"
#include "common/base/json_members.h"
#include "common/base/status.h"
#include "observability/api_json/node_json.h"

namespace rt::cli {

// Aligns the cells of `rows`, of which the first is the header. A column is as wide as its widest
// cell. Cells may be painted() as a whole; other control characters are made printable.
std::string table(std::vector<Words> rows);
// Strips trailing blanks from `text`, whose last line is a row of a table, and appends a newline.
void end_row(std::string* text);
// `line` between two rules of its width.
std::string boxed(const std::string& line);
// Local time for file names, such as 2024-01-31_12-34-56; empty when `wall_ms` is not positive.
std::string file_time(int64_t wall_ms);
// `data` as JSON with --format=json, otherwise as one YAML document.
std::string data_text(const CommandLine& line, const api_json::Json& data);
void print_data(const CommandLine& line, const api_json::Json& data);
void print_resources(const CommandLine& line, const api_json::Json& resources);

// A file that a command writes; standard output stays open when its owner goes.
struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdout) std::fclose(file);
  }
};
using OutputFile = std::unique_ptr<std::FILE, CloseFile>;
// Whether `path` can be written, without creating it. A command asks before its work, so that
// nobody waits for a result that cannot be saved.
Status check_writable(const std::string& path);

}  // namespace rt::cli
