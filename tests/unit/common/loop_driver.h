// Runs either kind of loop in the test's thread until something has happened.
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
  net::PollLoop* poll() { return poll_.get(); }

  // False when `timeout_us` passed first.
  bool run_until(const std::function<bool()>& happened, int64_t timeout_us = 10'000'000) {
    int64_t deadline = steady_now_us() + timeout_us;
    while (!happened()) {
      if (steady_now_us() > deadline) return false;
      turn();
    }
    return true;
  }

  // Reads once, waiting up to a millisecond.
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

// A directory that goes with the test.
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
