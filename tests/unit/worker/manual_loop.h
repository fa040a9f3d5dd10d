// A loop without sockets whose time a test moves. Connections fail or stay open questions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/net/loop.h"

namespace rt::test {

class ManualLoop final : public net::Loop {
 public:
  using Connected = std::function<void(Result<std::unique_ptr<net::Stream>>)>;
  struct Attempt {
    net::Address address;
    Connected done;
  };

  // The attempts to connect that have not been answered.
  std::vector<Attempt> attempts;
  // Answers all of them.
  void refuse_all() {
    for (Attempt& attempt : std::exchange(attempts, {}))
      attempt.done(make_error(Code::kUnavailable, "connection refused"));
  }
  // Moves the time, and runs what is due on the way.
  void advance(int64_t us) {
    const int64_t until_us = now_us_ + us;
    while (!timers_.empty() && timers_.begin()->first.first <= until_us) {
      auto due = timers_.extract(timers_.begin());
      now_us_ = due.key().first;
      due.mapped()();
    }
    now_us_ = until_us;
  }
  bool has_timers() const { return !timers_.empty(); }

  int64_t now_us() const override { return now_us_; }
  TimerId run_after(int64_t delay_us, Task task) override {
    timers_.emplace(std::pair(now_us_ + delay_us, ++last_timer_), std::move(task));
    return last_timer_;
  }
  void cancel(TimerId id) override {
    std::erase_if(timers_, [id](const auto& timer) { return timer.first.second == id; });
  }
  void post(Task task) override { run_after(0, std::move(task)); }
  void connect(const net::Address& address, int64_t, Connected done) override {
    attempts.push_back({address, std::move(done)});
  }
  Result<std::unique_ptr<net::Listener>> listen(const net::Address&,
                                                std::function<void(int fd)>) override {
    return make_error(Code::kInternal, "nobody listens here");
  }
  Result<std::unique_ptr<net::Listener>> listen_fd(int, std::function<void(int fd)>) override {
    return make_error(Code::kInternal, "nobody listens here");
  }
  std::unique_ptr<net::Stream> adopt(int) override { return nullptr; }
  std::unique_ptr<net::FdWatch> watch_readable(int, Task) override { return nullptr; }

 private:
  int64_t now_us_ = 1'000'000;
  TimerId last_timer_ = 0;
  std::map<std::pair<int64_t, TimerId>, Task> timers_;
};

}  // namespace rt::test
