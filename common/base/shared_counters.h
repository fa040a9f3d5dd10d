// Counters that processes of this host keep for another one, which reads them when they are gone:
// how much a process had done when it was killed, nobody can ask it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/fd.h"
#include "common/base/status.h"

namespace rt {

// One counter, of one writer.
class SharedCounter {
 public:
  // Counts for itself alone.
  SharedCounter() = default;
  // Number `number` of the counters at `place`; kInvalid for what cannot be one of them.
  static Result<SharedCounter> open(const std::string& place, int64_t number);

  void add_one() { at_->store(++count_, std::memory_order_relaxed); }

 private:
  int64_t count_ = 0;
  std::shared_ptr<std::atomic<int64_t>> at_ = std::make_shared<std::atomic<int64_t>>(0);
};

// All of them: memory without a file, a cache line for each. What they say is the word of other
// processes.
class SharedCounters {
 public:
  static constexpr int kCounters = 16384;
  static Result<std::unique_ptr<SharedCounters>> create();
  ~SharedCounters();
  SharedCounters(const SharedCounters&) = delete;
  SharedCounters& operator=(const SharedCounters&) = delete;

  // Where other processes of this user open them, while this one lives.
  std::string place() const;
  // One that nobody has, at 0; -1: all are taken.
  int take();
  // What it says at last, from 0; others may have it then.
  int64_t give_back(int number);

 private:
  SharedCounters(Fd fd, std::atomic<int64_t>* memory) : fd_(std::move(fd)), memory_(memory) {}
  std::atomic<int64_t>& at(int number) const;

  Fd fd_;
  std::atomic<int64_t>* memory_;
  int begun_ = 0;          // numbers from here on were never taken
  std::vector<int> free_;  // below that; the last one given back goes first: its page is there
};

}  // namespace rt
