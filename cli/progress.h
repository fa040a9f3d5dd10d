// How far long work is: a bar on stderr while it is a terminal, nothing elsewhere.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace rt::cli {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  // the line is gone
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `whole` <= 0: nobody knows. `note` is shown behind: "12.3MiB". Drawn a few times a second at
  // most.
  void at(int64_t done, int64_t whole, const std::string& note = "");

 private:
  const std::string what_;
  const bool shown_;
  bool drawn_ = false;
  int64_t last_us_ = 0;
};

// "what [#####.....]  50% note", or "what note" when the whole is not known.
std::string progress_line(const std::string& what, int64_t done, int64_t whole,
                          const std::string& note);

// Of work that takes a known time; a thread draws meanwhile.
class TimedProgress {
 public:
  TimedProgress(std::string what, int64_t whole_us);
  ~TimedProgress();

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;  // guarded by mutex_
  std::thread thread_;    // where stderr is a terminal
};

}  // namespace rt::cli
