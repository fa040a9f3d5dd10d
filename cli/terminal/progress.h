// Progress bars on stderr, drawn only if stderr is a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "common/base/mutex.h"

namespace rt::cli {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  // Erases the line.
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Draws the bar, at most ten times a second. `whole` <= 0 means that the total is not known.
  // `note`, for example "12.3MiB", is shown behind the bar.
  void at(int64_t done, int64_t whole, const std::string& note = "");

 private:
  const std::string what_;
  const bool shown_;
  bool drawn_ = false;
  int64_t last_us_ = 0;
};

// Returns "what [#####.....]  50% note", or "what note" when the total is not known (`whole` <= 0).
std::string progress_line(const std::string& what, int64_t done, int64_t whole,
                          const std::string& note);

// A bar for work whose duration is known beforehand. A thread draws it until the destructor, which
// joins the thread.
class TimedProgress {
 public:
  TimedProgress(std::string what, int64_t whole_us);
  ~TimedProgress();

 private:
  Mutex mutex_;
  CondVar over_;
  bool is_over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Runs only if stderr is a terminal
};

}  // namespace rt::cli
