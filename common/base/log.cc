#include "common/base/log.h"

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <memory>

#include "common/base/environment.h"
#include "common/base/fd.h"
#include "common/base/trusted_directory.h"
#include "common/base/utf8.h"

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

// Escapes text for a JSON string. Bytes that are not UTF-8 are replaced.
std::string json_escaped(std::string_view text) {
  std::string out;
  for (char c : valid_utf8(std::string(text))) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < ' ') {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out;
}

// Writes the message of a log line as the value of a JSON member.
class EscapedMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string text = json_escaped({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<EscapedMessage>();
  }
};

// Writes each log line as one JSON object.
std::unique_ptr<spdlog::formatter> json_formatter(const std::string& component) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<EscapedMessage>('*').set_pattern(
      R"({"asctime":"%Y-%m-%d %H:%M:%S,%e","levelname":"%l","component":")" +
      json_escaped(component) + R"(","process":%P,"message":"%*"})");
  return formatter;
}

// Makes the log's file, or checks the one that is there. spdlog opens it by its name afterwards: in
// a trusted directory nobody else can replace it in between.
void claim_file(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO that somebody has put there would block.
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Fd fd(::open(path.c_str(), flags, 0600));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0)
    throw spdlog::spdlog_ex("it cannot be opened, or is a link", errno);
  if (!S_ISREG(info.st_mode) || !trusted_owner(info.st_uid))
    throw spdlog::spdlog_ex("it is no regular file of this user or root");
}

}  // namespace

void init_log(const LogOptions& options) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  std::string complaint;
  if (!options.file.empty()) {
    spdlog::file_event_handlers handlers;
    if (options.own_file_only) handlers.before_open = claim_file;
    try {
      sink = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
          options.file, options.max_file_bytes, options.max_files, /*rotate_on_open=*/false,
          handlers);
    } catch (const spdlog::spdlog_ex& e) {
      complaint = e.what();
    }
  }
  if (!sink) sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto made = std::make_shared<spdlog::logger>(options.component, sink);
  if (environment("RAY_BACKEND_LOG_JSON") == "1") {
    made->set_formatter(json_formatter(options.component));
  } else {
    made->set_pattern("%Y-%m-%d %H:%M:%S,%e\t%l " + options.component + " -- %v");
  }
  made->set_level(spdlog::level::debug);
  made->flush_on(spdlog::level::info);
  // Lines that cannot be written are dropped: a full disk must neither end the process nor flood
  // stderr.
  made->set_error_handler([](const std::string&) {});
  logger() = std::move(made);
  g_level = static_cast<int>(options.level);
  if (!complaint.empty())
    RT_WARN("cannot log to {}: {}; logging to stderr", options.file, complaint);
}

bool log_enabled(LogLevel level) {
  return static_cast<int>(level) >= g_level.load(std::memory_order_relaxed);
}

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
