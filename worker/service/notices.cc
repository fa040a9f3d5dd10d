#include "worker/service/notices.h"

#include <fmt/core.h>

#include <utility>

#include "common/base/clock.h"
#include "common/rpc/build.h"

namespace rt::worker {

void Notices::add(DriverLine line) {
  lines_.push_back(std::move(line));
  wake_();
}

void Notices::tell(std::string text) {
  if (!options_.is_driver) return fmt::print(stderr, "{}\n", text);
  DriverLine line;
  line.name = "raylet";
  line.text = std::move(text);
  line.is_notice = true;
  add(std::move(line));
}

void Notices::warn(std::string text, std::string source) {
  DriverLine line;
  line.name = std::move(source);
  line.text = std::move(text);
  line.is_stderr = line.is_notice = true;
  add(std::move(line));
}

void Notices::unhandled(const std::string& error) {
  DriverLine line;
  line.text = "Unhandled error (suppress with 'RAY_IGNORE_UNHANDLED_ERRORS=1'): " + error;
  line.is_stderr = line.is_error = true;
  add(std::move(line));
}

void Notices::attempt_failed(const std::function<std::string()>& text) {
  constexpr int kMaxReports = 10;
  constexpr int64_t kWindowUs = 1'000'000;
  const int64_t now_us = steady_now_us();
  if (now_us - attempts_since_us_ > kWindowUs) attempts_ = 0;
  if (attempts_++ == 0) attempts_since_us_ = now_us;
  if (closed_ || attempts_ > kMaxReports + 1) return;
  tell(attempts_ > kMaxReports ? "More tasks failed and will be retried. Messages about them are "
                                 "suppressed for up to a second."
                               : text());
}

void Notices::met_build(const std::string& theirs) {
  constexpr size_t kMaxDifferences = 8;
  if (!options_.is_driver || theirs == rpc::my_build() ||
      build_differences_.size() >= kMaxDifferences)
    return;
  const std::string difference = rpc::build_difference(rpc::my_build(), theirs);
  if (difference.empty() || !build_differences_.insert(difference).second) return;
  warn("The cluster and this program differ: " + difference);
}

void Notices::add(const proto::HeadEvent& event) {
  if (!options_.is_driver) return;
  for (const auto& batch : event.logs()) {
    for (const auto& line : batch.lines()) {
      DriverLine out;
      out.name = batch.name();
      out.ip = batch.ip() == context_.node_ip ? "" : batch.ip();
      out.text = line;
      out.pid = batch.pid();
      out.is_stderr = batch.is_stderr();
      lines_.push_back(std::move(out));
    }
  }
  for (const auto& notice : event.notices())
    warn(notice.text(), notice.source().empty() ? "raylet" : notice.source());
  if (!lines_.empty()) wake_();
}

void Notices::deliver(WorkerLock& lock) {
  std::vector<DriverLine> lines;
  lines.swap(lines_);
  if (lines.empty()) return;
  lock.unlock();
  if (options_.log_sink) {
    options_.log_sink(lines);
  } else {
    // A worker, or a driver that does not print the output of workers, still prints its own
    // errors.
    for (const DriverLine& line : lines) {
      if (line.is_error) fmt::print(stderr, "{}\n", line.text);
    }
  }
  lock.lock();
}

}  // namespace rt::worker
