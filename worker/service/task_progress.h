// How far a task is between its arrival and its end: whether its code has begun, and whether its
// caller still wants it. For any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace rt::worker {

class TaskProgress {
 public:
  // The task's code begins. False when the task was taken back before: then it must not.
  bool start() {
    Stage waiting = Stage::kWaiting;
    return stage_.compare_exchange_strong(waiting, Stage::kStarted) || waiting == Stage::kStarted;
  }
  bool has_started() const { return stage_.load() == Stage::kStarted; }
  // True when user code has not started: it never will, and no reply is sent for the task.
  bool take_back() {
    Stage waiting = Stage::kWaiting;
    return stage_.compare_exchange_strong(waiting, Stage::kTakenBack);
  }
  bool taken_back() const { return stage_.load() == Stage::kTakenBack; }

  void cancel() { cancelled_.store(true, std::memory_order_release); }
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // Wakes the executing thread out of a wait, once, because the language's runtime has an exception
  // to raise.
  void interrupt() { interrupt_.store(true, std::memory_order_release); }
  bool take_interrupt() {
    return interrupt_.load(std::memory_order_relaxed) && interrupt_.exchange(false);
  }

 private:
  enum class Stage : uint8_t { kWaiting, kStarted, kTakenBack };
  std::atomic<Stage> stage_{Stage::kWaiting};
  std::atomic<bool> cancelled_{false}, interrupt_{false};
};

}  // namespace rt::worker
