// Text logs: one line per event, "<date> <time>,<ms>\t<LEVEL> <component> -- <message>", or one
// JSON object per line with RAY_BACKEND_LOG_JSON=1. Lines go to stderr until init_log() names a
// file. Once init_log() has returned, any thread may log. spdlog is included by log.cc only.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace rt {

enum class LogLevel : int { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

struct LogOptions {
  std::string component;  // Shown in each line, for example "head".
  std::string file;       // Empty: stderr.
  LogLevel level = LogLevel::kInfo;
  size_t max_file_bytes = 512u << 20;  // The file is rotated beyond this size.
  int max_files = 5;
  // Refuses a link, and a file of another user, in place of the log's file: whoever could put one
  // into its directory would choose where the lines of this process go. A new file is for its
  // owner only.
  bool own_file_only = false;
};

// Call it once, from main(). The log never ends the process: when its file cannot be opened, lines
// go to stderr; lines that cannot be written later, for example to a full disk, are lost.
void init_log(const LogOptions& options);
bool log_enabled(LogLevel level);
void log_write(LogLevel level, std::string_view message);
void flush_log();
// Returns the level of this name: debug, info, warning or error (also warn and critical). Returns
// `fallback` for any other name.
LogLevel parse_log_level(std::string_view name, LogLevel fallback);

template <class... Args>
void log_at(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_write(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace rt

#define RT_DEBUG(...) ::rt::log_at(::rt::LogLevel::kDebug, __VA_ARGS__)
#define RT_INFO(...) ::rt::log_at(::rt::LogLevel::kInfo, __VA_ARGS__)
#define RT_WARN(...) ::rt::log_at(::rt::LogLevel::kWarning, __VA_ARGS__)
#define RT_ERROR(...) ::rt::log_at(::rt::LogLevel::kError, __VA_ARGS__)
