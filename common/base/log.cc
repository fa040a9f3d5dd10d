#include "common/base/log.h"

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>

namespace rt {
namespace {

std::atomic<int> g_level{static_cast<int>(LogLevel::kInfo)};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::shared_ptr<spdlog::logger>& logger() {
  static auto* instance = new std::shared_ptr<spdlog::logger>(
      std::make_shared<spdlog::logger>("ray", std::make_shared<spdlog::sinks::stderr_sink_mt>()));
  return *instance;
}

}  // namespace

void init_log(const LogOptions& options) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  std::string complaint;
  if (!options.file.empty()) {
    try {
      sink = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(options.file, options.max_file_bytes,
                                                                    options.max_files);
    } catch (const spdlog::spdlog_ex& e) {
      complaint = e.what();
    }
  }
  if (!sink) sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto made = std::make_shared<spdlog::logger>(options.component, sink);
  made->set_pattern("%Y-%m-%d %H:%M:%S,%e\t%l " + options.component + " -- %v");
  made->set_level(spdlog::level::debug);
  made->flush_on(spdlog::level::info);
  // A full disk must not end the process, nor flood stderr.
  made->set_error_handler([](const std::string&) {});
  logger() = std::move(made);
  g_level = static_cast<int>(options.level);
  if (!complaint.empty()) RT_WARN("cannot log to {}: {}; logging to stderr", options.file, complaint);
}

bool log_enabled(LogLevel level) { return static_cast<int>(level) >= g_level.load(std::memory_order_relaxed); }

void log_write(LogLevel level, std::string_view message) {
  logger()->log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

void flush_log() { logger()->flush(); }

LogLevel parse_log_level(std::string_view name, LogLevel fallback) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning" || name == "warn") return LogLevel::kWarning;
  if (name == "error" || name == "critical") return LogLevel::kError;
  return fallback;
}

}  // namespace rt
