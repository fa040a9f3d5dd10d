#include "cli/terminal/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "cli/terminal/print.h"
#include "common/base/clock.h"

namespace rt::cli {
namespace {

constexpr int64_t kRedrawUs = 100'000;
constexpr int kBar = 30;

bool on_terminal() { return isatty(STDERR_FILENO) != 0; }

}  // namespace

std::string progress_line(const std::string& what, int64_t done, int64_t whole,
                          const std::string& note) {
  if (whole <= 0) return fmt::format("{} {}", what, note);
  double part = std::clamp(static_cast<double>(done) / static_cast<double>(whole), 0.0, 1.0);
  int filled = static_cast<int>(part * kBar);
  return fmt::format("{} [{}{}] {:3.0f}%{}{}", what, std::string(static_cast<size_t>(filled), '#'),
                     std::string(static_cast<size_t>(kBar - filled), '.'), 100 * part,
                     note.empty() ? "" : " ", note);
}

Progress::Progress(std::string what) : what_(std::move(what)), shown_(on_terminal()) {}

Progress::~Progress() {
  if (drawn_) print(stderr, "\r\x1b[K");
}

void Progress::at(int64_t done, int64_t whole, const std::string& note) {
  if (!shown_) return;
  int64_t now_us = steady_now_us();
  if (drawn_ && now_us - last_us_ < kRedrawUs) return;
  drawn_ = true;
  last_us_ = now_us;
  print(stderr, "\r{}\x1b[K", progress_line(what_, done, whole, note));
}

TimedProgress::TimedProgress(std::string what, int64_t whole_us) {
  if (!on_terminal()) return;
  thread_ = std::thread([this, what = std::move(what), whole_us] {
    Progress progress(what);
    const int64_t begin_us = steady_now_us();
    MutexLock lock(mutex_);
    while (!is_over_) {
      int64_t past_us = steady_now_us() - begin_us;
      progress.at(
          past_us, whole_us,
          fmt::format("{} s of {}", std::min(past_us, whole_us) / 1'000'000, whole_us / 1'000'000));
      over_.wait_for(mutex_, std::chrono::microseconds(kRedrawUs));
    }
  });
}

TimedProgress::~TimedProgress() {
  {
    MutexLock lock(mutex_);
    is_over_ = true;
  }
  over_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace rt::cli
