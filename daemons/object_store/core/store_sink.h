// The decisions of StoreCore, for the service, a test or the simulator to carry out.
#pragma once

#include <vector>

#include "daemons/object_store/core/types.h"

namespace rt::store {

// Receives the decisions of StoreCore. Implementations must not call back into the core before
// they return.
class StoreSink {
 public:
  virtual ~StoreSink() = default;
  virtual void reply_create(ClientId client, CallId call, Result<std::vector<int64_t>> offsets) = 0;
  virtual void reply_lease(ClientId client, CallId call, Result<LeasedExtent> extent) = 0;
  virtual void reply_get(ClientId client, CallId call, std::vector<GetAnswer> answers) = 0;
  // Closes the connection of a client that broke the protocol. The core forgets the client when
  // client_gone() follows.
  virtual void disconnect(ClientId client, Error why) = 0;
  // Reserves the arena's pages up to this offset. on_reserved() answers; there is one request at a
  // time.
  virtual void reserve(int64_t up_to) = 0;
  // Fetches an object that other nodes have and a client waits for. The fetcher must create and
  // seal it as kFetcher, or call on_fetch_failed(). If its size was known, room has been set aside.
  // `first`: the fetch goes before all others that lack this, because a running task waits for it.
  virtual void fetch(const ObjectId& id, const std::vector<Source>& sources, bool first) = 0;
  // Sends a notice. Nothing depends on whether it arrives.
  virtual void tell(const Notice&) {}
};

}  // namespace rt::store
