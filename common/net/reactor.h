// Private to common/net: what a loop provides for descriptors. Streams, listeners and connection
// attempts are written once over this interface; AsioLoop and PollLoop implement it.
#pragma once

#include <cstdint>
#include <memory>

#include "common/net/loop.h"

namespace rt::net {

class SocketStream;

enum Interest : uint32_t { kNoInterest = 0, kRead = 1, kWrite = 2, kHangup = 4 };

// Reacts to the readiness of one descriptor. The reactor shares ownership while it watches and
// while it calls.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // `what` is a set of kRead, kWrite and kHangup (an end or an error can be read). True: there may
  // be more to read; the reactor calls again in the next turn even if nothing new arrives.
  virtual bool on_ready(uint32_t what) = 0;
  // Sends queued bytes, if the watcher is a stream; see PollLoop::send_last(). False: the socket is
  // full.
  virtual bool send_last() { return true; }
};

// Lets a helper thread post to a loop that may be gone by then; see endpoints.h.
class LoopLink;

class Reactor {
 public:
  using Key = uint64_t;  // 0 means none.
  // kEdge: the watcher reads until there is no more, or returns true from on_ready(). An
  // implementation may treat it as kLevel.
  enum class Trigger { kLevel, kEdge };

  virtual ~Reactor() = default;
  // Returns 0 and sets errno when the system refuses.
  virtual Key watch(int fd, std::shared_ptr<Watcher> watcher, uint32_t interest,
                    Trigger trigger) = 0;
  virtual void update(Key key, uint32_t interest) = 0;
  virtual void unwatch(Key key) = 0;  // Must be called before the descriptor is closed.
  // Flushes the stream at the end of the current turn.
  virtual void flush_later(std::shared_ptr<SocketStream> stream) = 0;
  virtual Loop& loop() = 0;
  virtual std::shared_ptr<LoopLink> link() = 0;
};

}  // namespace rt::net
