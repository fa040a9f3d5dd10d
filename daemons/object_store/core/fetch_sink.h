// The decisions of Fetches, for the service, a test or the simulator to carry out.
#pragma once

#include <cstddef>
#include <string>

#include "daemons/object_store/core/types.h"

namespace rt::store {

using FetchId = uint64_t;  // Names one fetch of an object; numbers are never reused.

// A part of an object that a source is asked for.
struct ChunkRequest {
  FetchId fetch = 0;
  ObjectId object;
  size_t chunk = 0;
  Range range;     // The range in the object.
  int64_t to = 0;  // Where in the arena the bytes go.
};

// Bytes that have arrived and that another node wants.
struct FetchedPiece {
  FetchId fetch = 0;
  Range range;  // The range in the arena.
  int64_t total_size = 0;
  WorkerId owner;
};

// Receives the decisions of Fetches. Implementations must not call back into the core before they
// return. They answer each request exactly once.
class FetchSink {
 public:
  virtual ~FetchSink() = default;

  // ---- to the nodes that have a copy
  // connected() or connect_failed() answers.
  virtual void connect(FetchId fetch, const ObjectId& object, const Source& source) = 0;
  // Ask the source for the size and the owner of the object. described() answers.
  virtual void describe(FetchId fetch, const ObjectId& object) = 0;
  // pulled() answers. There is no limit of time: the bytes are written to the arena until the call
  // has ended, and close() ends it.
  virtual void pull(const ChunkRequest& request) = 0;
  // Close the connection to the source, so that all calls over it end.
  virtual void close(FetchId fetch, const Error& why) = 0;
  // Tells the log that a source is given up. `source` is its address.
  virtual void source_failed(const ObjectId& object, const std::string& source,
                             const Error& why) = 0;

  // ---- to StoreCore, as kFetcher
  // Create the object, and wait for room. created() answers.
  virtual void create(FetchId fetch, const CreateItem& item) = 0;
  virtual void seal(const SealItem& item) = 0;
  virtual void fail(const ObjectId& object, const Error& why) = 0;
  // Reports the last decision on each fetch: nobody reads from its room or writes to it any more.
  // kReleased: the pin of the sealed copy goes. kAborted: the room of the unsealed object goes.
  enum class End { kWithoutRoom, kReleased, kAborted };
  virtual void end(FetchId fetch, const ObjectId& object, End how) = 0;

  // ---- to other nodes that read what is being received
  // piece_sent() follows when the bytes are not read any more.
  virtual void serve(CallId reader, const FetchedPiece& piece) = 0;
  virtual void refuse(CallId reader, Error why) = 0;
};

}  // namespace rt::store
