// How results look on a terminal.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "common/api_json/node_json.h"
#include "common/base/status.h"

namespace rt::cli {

// Columns as wide as their widest cell; the header first.
std::string table(std::vector<Words> rows);
// Ends the last row of a text, without the blanks it ends in.
void end_row(std::string* text);
std::string boxed(const std::string& line);
std::string file_time(int64_t wall_ms);  // 2024-01-31_12-34-56
// JSON where --format says so, else one YAML document.
std::string data_text(const CommandLine& line, const api_json::Json& data);
void print_data(const CommandLine& line, const api_json::Json& data);
void print_resources(const CommandLine& line, const api_json::Json& resources);
// Of a row: "" and 0 where there is no such text and number.
std::string text_of(const api_json::Json& row, const char* name);
int64_t number_of(const api_json::Json& row, const char* name);

// A file that a command writes; standard output stays open when its owner goes.
struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdout) std::fclose(file);
  }
};
using OutputFile = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace rt::cli
