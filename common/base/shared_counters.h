// Counters in shared memory that processes of this host increment for another process, which can
// read them even after they were killed and can no longer be asked.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/fd.h"
#include "common/base/status.h"

namespace rt {

// One counter, which a single writer increments.
class SharedCounter {
 public:
  // A counter that nobody else reads.
  SharedCounter() = default;
  // Opens counter `number` of the SharedCounters at `place`. kInvalid when there can be no such
  // counter, kIo when its memory cannot be opened.
  static Result<SharedCounter> open(const std::string& place, int64_t number);

  void add_one() { at_->store(++count_, std::memory_order_relaxed); }

 private:
  int64_t count_ = 0;
  std::shared_ptr<std::atomic<int64_t>> at_ = std::make_shared<std::atomic<int64_t>>(0);
};

// All counters of one reader: anonymous shared memory with a cache line for each. The values come
// from other processes and are not to be trusted. Only one thread may use it.
class SharedCounters {
 public:
  static constexpr int kCounters = 16384;
  static Result<std::unique_ptr<SharedCounters>> create();
  ~SharedCounters();
  SharedCounters(const SharedCounters&) = delete;
  SharedCounters& operator=(const SharedCounters&) = delete;

  // The path at which other processes of this user can open the counters while this process lives.
  std::string place() const;
  // Takes a free counter, set to 0, and returns its number; -1 when all are taken.
  int take();
  // Frees a counter and returns its last value, at least 0. Another process may get the number
  // next.
  int64_t give_back(int number);

 private:
  SharedCounters(Fd fd, std::atomic<int64_t>* memory) : fd_(std::move(fd)), memory_(memory) {}
  std::atomic<int64_t>& at(int number) const;

  Fd fd_;
  std::atomic<int64_t>* memory_;
  int begun_ = 0;          // The numbers from here on were never taken.
  std::vector<int> free_;  // The smaller free numbers; the last one freed is reused first.
};

}  // namespace rt
