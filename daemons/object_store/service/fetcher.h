// Fetches objects of other nodes into the arena: finds a location that answers, requests chunks
// ahead, has them written straight to their place, and seals the copy. Chunks that have arrived
// are served to other nodes already (broadcast trees).
//
// Lifecycle of a fetch: it is queued, because the bytes under way are bounded; a source is asked
// for size and owner; room is created; chunks come from this source, or from the next ones when it
// fails; the copy is sealed, or the fetch fails when no source is left. A source whose node does
// not answer is asked again, because a node that hangs may go on: one that has ended refuses. The
// room is given up only when nobody reads from it or writes to it any more. Everything runs in the
// loop's thread. A failure reaches the clients that wait for the object as an Error; other fetches
// go on.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "common/net/loop.h"
#include "daemons/object_store/core/chunk_map.h"
#include "daemons/object_store/core/store_core.h"
#include "daemons/object_store/service/peers.h"
#include "daemons/object_store/shm/arena.h"

namespace rt::store {

class Fetcher {
 public:
  struct Options {
    int64_t chunk_bytes = 0;
    int64_t chunks_in_flight = 0;
    int64_t no_progress_us = 0;
    // How long sources that do not answer are asked again.
    int64_t patience_us = 0;
    // Bounds the bytes of all fetches under way; one fetch is always allowed.
    int64_t max_bytes = 0;
  };
  // Runs `event` on the core, and then what must follow every event (timers).
  using OnCore = std::function<void(const std::function<void(StoreCore&, Now)>& event)>;
  Fetcher(net::Loop& loop, Peers& peers, Arena& arena, Options options, OnCore on_core);
  ~Fetcher();

  // Implements StoreSink::fetch().
  void start(const ObjectId& id, std::vector<Source> sources, bool first);
  // Implements StoreSink::reply_create() for kFetcher.
  void on_created(CallId call, Result<std::vector<int64_t>> offsets);

  bool is_receiving(const ObjectId& id) const;
  // Calls `done` with a range of an object that is_receiving(), once the range has arrived.
  struct Piece {
    OwnedBytes bytes;
    int64_t total_size = 0;
    WorkerId owner;
  };
  using GotPiece = std::function<void(Result<Piece>)>;
  void when_received(const ObjectId& id, Range range, GotPiece done);

 private:
  struct Waiting {
    Range range;
    GotPiece done;
  };
  struct Fetch {
    ObjectId id;
    std::vector<Source> sources;
    size_t source = 0;
    std::shared_ptr<rpc::Connection> connection;
    // No more chunks are requested from this source; the next source follows when all its calls
    // have ended.
    bool source_failed = false;
    Error last_error;
    WorkerId owner;
    int64_t offset = -1;  // in the arena, once room is created
    // The bytes that the fetch counts towards the bound.
    int64_t hinted_bytes = 0;
    ChunkMap chunks;
    int64_t in_flight = 0;
    int64_t serving = 0;    // pieces on their way to other nodes
    bool finished = false;  // sealed or failed
    bool sealed = false;
    int64_t progress_us = 0;
    int64_t heard_us = 0;     // when a source answered last, or when the fetch was launched
    bool unanswered = false;  // a source did not answer since the first one was asked
    net::Loop::TimerId timer = 0;
    std::vector<Waiting> waiting;
  };
  using FetchPtr = std::shared_ptr<Fetch>;  // shared with the callbacks of its calls
  using Queue = std::list<std::pair<ObjectId, std::vector<Source>>>;

  void launch_queued();
  // Returns false if the bytes under way have reached their bound.
  bool launch_from(Queue& queue);
  void next_source(const FetchPtr& fetch);
  void probe(const FetchPtr& fetch);
  void pump(const FetchPtr& fetch);
  void on_chunk(const FetchPtr& fetch, size_t chunk, const Error* error, int64_t total_size);
  void on_source_failed(const FetchPtr& fetch, const Error& error);
  void serve_waiting(const FetchPtr& fetch);
  Piece piece_of(const FetchPtr& fetch, Range range);
  void seal(const FetchPtr& fetch);
  void fail(const FetchPtr& fetch, const Error& error);
  void remove_if_unused(const FetchPtr& fetch);
  void watch_progress(const FetchPtr& fetch);

  net::Loop& loop_;
  Peers& peers_;
  Arena& arena_;
  const Options options_;
  const OnCore on_core_;
  // Bounded by the number of clients that wait in the core. Fetches for which running tasks wait
  // come first.
  Queue first_, others_;
  // Fetches stay here until nobody touches their memory any more.
  std::unordered_map<ObjectId, FetchPtr> fetches_;
  std::unordered_map<CallId, FetchPtr> creating_;
  CallId next_call_ = 1;
  int64_t bytes_ = 0;
  // Callbacks that run after the destructor see it expired.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::store
