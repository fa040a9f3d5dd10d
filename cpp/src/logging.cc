#include "ray/api/logging.h"

#include <cstdlib>

#include "common/base/log.h"

namespace ray::internal {
namespace {

rt::LogLevel to_log_level(RayLoggerLevel level) {
  switch (level) {
    case RayLoggerLevel::DEBUG: return rt::LogLevel::kDebug;
    case RayLoggerLevel::INFO: return rt::LogLevel::kInfo;
    case RayLoggerLevel::WARNING: return rt::LogLevel::kWarning;
    default: return rt::LogLevel::kError;
  }
}

}  // namespace

bool LogEnabled(RayLoggerLevel level) {
  return level == RayLoggerLevel::FATAL || rt::log_enabled(to_log_level(level));
}

void WriteLog(RayLoggerLevel level, const char* file, int line, const std::string& text) {
  std::string_view name = file;
  name = name.substr(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  size_t end = text.find_last_not_of('\n');
  std::string_view body = std::string_view(text).substr(0, end == std::string::npos ? 0 : end + 1);
  rt::log_write(to_log_level(level), fmt::format("{}:{}: {}", name, line, body));
  if (level == RayLoggerLevel::FATAL) {
    rt::flush_log();
    std::abort();
  }
}

}  // namespace ray::internal
