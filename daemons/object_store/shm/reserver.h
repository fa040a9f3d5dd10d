// Reserves the arena's pages in a thread of its own: a gigabyte takes a third of a second, during
// which the daemon's loop goes on serving others.
//
// Lifecycle: the thread starts with the first request and ends in the destructor. `done` is called
// in that thread: post it on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "common/base/status.h"
#include "daemons/object_store/shm/arena.h"

namespace rt::store {

class Reserver {
 public:
  // `up_to`: pages below exist now, even when the status is an error.
  using Done = std::function<void(int64_t up_to, Status status)>;
  Reserver(Arena& arena, Done done) : arena_(arena), done_(std::move(done)) {}
  ~Reserver();

  // Everything below `up_to`. One request at a time.
  void reserve(int64_t up_to);

 private:
  void run();
  Status extend(int64_t up_to);

  Arena& arena_;
  const Done done_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_;
  int64_t wanted_ = 0;     // guarded by mutex_
  bool stopping_ = false;  // guarded by mutex_
  int64_t reserved_ = 0;   // the thread's own
};

}  // namespace rt::store
