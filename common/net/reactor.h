// Private to common/net: what a loop provides for descriptors. Streams, listeners and connection
// attempts are written once over it; AsioLoop and PollLoop implement it.
#pragma once

#include <cstdint>
#include <memory>

#include "common/net/loop.h"

namespace rt::net {

class SocketStream;

enum Interest : uint32_t { kNoInterest = 0, kRead = 1, kWrite = 2, kHangup = 4 };

// Reacts to the readiness of one descriptor. Held by the reactor while watched and while called.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // `what` is a set of kRead, kWrite and kHangup (there is an end or an error to be read). True:
  // there may be more to read, call again in the next turn although nothing new arrives.
  virtual bool on_ready(uint32_t what) = 0;
  // Sends what is queued, if it sends; see PollLoop::send_last(). False: the socket is full.
  virtual bool send_last() { return true; }
};

// Lets a helper thread post to a loop that may be gone by then.
class LoopLink;

class Reactor {
 public:
  using Key = uint64_t;  // 0: none
  enum class Trigger {
    kLevel,
    kEdge
  };  // kEdge: the watcher reads until there is no more, or says so

  virtual ~Reactor() = default;
  // 0 with errno set when the system refuses.
  virtual Key watch(int fd, std::shared_ptr<Watcher> watcher, uint32_t interest,
                    Trigger trigger) = 0;
  virtual void update(Key key, uint32_t interest) = 0;
  virtual void unwatch(Key key) = 0;  // before the descriptor is closed
  virtual void flush_later(std::shared_ptr<SocketStream> stream) = 0;
  virtual Loop& loop() = 0;
  virtual std::shared_ptr<LoopLink> link() = 0;
};

}  // namespace rt::net
