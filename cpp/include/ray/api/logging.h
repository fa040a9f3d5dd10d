// RAYLOG(INFO) << "text"; writes to the log of the driver or worker. FATAL then aborts the
// process.
#pragma once

#include <sstream>
#include <string>

#include "ray/api/visibility.h"

namespace ray {

enum class RayLoggerLevel { DEBUG = -1, INFO = 0, WARNING = 1, ERROR = 2, FATAL = 3 };

namespace internal {

RAY_API bool LogEnabled(RayLoggerLevel level);
RAY_API void WriteLog(RayLoggerLevel level, const char* file, int line, const std::string& text);

// One log line, written when the statement ends.
class LogLine {
 public:
  LogLine(RayLoggerLevel level, const char* file, int line)
      : level_(level), file_(file), line_(line), enabled_(LogEnabled(level)) {}
  ~LogLine() {
    if (enabled_) WriteLog(level_, file_, line_, stream_.str());
  }
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;

  template <class T>
  LogLine& operator<<(const T& value) {
    if (enabled_) stream_ << value;
    return *this;
  }
  LogLine& operator<<(std::ostream& (*manipulator)(std::ostream&)) {
    if (enabled_) manipulator(stream_);
    return *this;
  }

 private:
  const RayLoggerLevel level_;
  const char* const file_;
  const int line_;
  const bool enabled_;
  std::ostringstream stream_;
};

}  // namespace internal
}  // namespace ray

#define RAYLOG(level) ::ray::internal::LogLine(::ray::RayLoggerLevel::level, __FILE__, __LINE__)
