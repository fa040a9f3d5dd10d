// Runs either kind of net::Loop in the test's thread until a condition holds, so that one test
// covers both.
#pragma once

#include <functional>
#include <memory>

#include "common/base/clock.h"
#include "common/net/asio_loop.h"
#include "common/net/poll_loop.h"

namespace rt::test {

enum class LoopKind { kAsio, kPoll };

class LoopDriver {
 public:
  explicit LoopDriver(LoopKind kind) {
    if (kind == LoopKind::kAsio) {
      asio_ = std::make_unique<net::AsioLoop>();
    } else {
      poll_ = std::make_unique<net::PollLoop>();
    }
  }
  net::Loop& loop() { return asio_ ? static_cast<net::Loop&>(*asio_) : *poll_; }
  // Returns null for LoopKind::kAsio.
  net::PollLoop* poll() { return poll_.get(); }

  // Turns the loop until `happened` returns true. Returns false when `timeout_us` passed first.
  // That is longer than the tests' time-outs of 60 s, whose callbacks refer to variables of the
  // caller.
  bool run_until(const std::function<bool()>& happened, int64_t timeout_us = 70'000'000) {
    int64_t deadline = steady_now_us() + timeout_us;
    while (!happened()) {
      if (steady_now_us() > deadline) return false;
      turn();
    }
    return true;
  }

  // Dispatches what is ready, after waiting for at most about a millisecond.
  void turn() {
    if (poll_) {
      net::PollLoop::Ready ready;
      poll_->flush_all();
      poll_->wait(ready, 1000);
      poll_->dispatch(ready);
    } else {
      asio_->run_after(500, [this] { asio_->stop(); });
      asio_->run();
    }
  }

 private:
  std::unique_ptr<net::AsioLoop> asio_;
  std::unique_ptr<net::PollLoop> poll_;
};

inline std::string loop_name(LoopKind kind) { return kind == LoopKind::kAsio ? "Asio" : "Poll"; }

// A directory that the destructor removes with all its contents.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  const std::string& root() const { return path_; }

 private:
  std::string path_;
};

}  // namespace rt::test
