// Structured text logs: one line per event, "<date> <time>,<ms>\t<LEVEL> <component> -- <message>".
// Goes to stderr until init_log() names a file. spdlog stays inside log.cc.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace rt {

enum class LogLevel : int { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

struct LogOptions {
  std::string component;  // e.g. "head": shown in each line
  std::string file;       // empty: stderr
  LogLevel level = LogLevel::kInfo;
  size_t max_file_bytes = 512u << 20;  // rotated beyond this
  int max_files = 5;
};

// Once, from main(). A log file that cannot be opened or written never ends the process: lines go
// to stderr instead.
void init_log(const LogOptions& options);
bool log_enabled(LogLevel level);
void log_write(LogLevel level, std::string_view message);
void flush_log();
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
