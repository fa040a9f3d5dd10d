// Reserves the arena's pages in a thread of its own: a gigabyte takes a third of a second, in
// which the daemon's loop serves other requests.
//
// The thread starts with the first request and ends in the destructor. `done` runs in that thread,
// or in reserve() if there can be none, so it must post the result to the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "daemons/object_store/shm/arena.h"

namespace rt::store {

class Reserver {
 public:
  // Takes the result: pages below `up_to` exist, even if the status is an error.
  using Done = std::function<void(int64_t up_to, Status status)>;
  Reserver(Arena& arena, Done done) : arena_(arena), done_(std::move(done)) {}
  ~Reserver();

  // Reserves everything below `up_to`. One request at a time.
  void reserve(int64_t up_to);

 private:
  void run();
  Status extend(int64_t up_to);

  Arena& arena_;
  const Done done_;
  std::thread thread_;
  Mutex mutex_;
  CondVar wake_;
  int64_t wanted_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
  int64_t reserved_ = 0;  // Used by the thread only.
};

}  // namespace rt::store
