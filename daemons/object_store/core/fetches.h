// Decides how objects of other nodes come into the arena: which fetch is launched, which source is
// asked and for which chunks, and when the copy is sealed. Chunks that have arrived are served to
// other nodes already (broadcast trees).
//
// Lifecycle of a fetch: it is queued, because the bytes under way are bounded; a source is
// connected to and asked for size and owner; room is created; chunks come from this source, or from
// the next ones when it fails; the copy is sealed, or the fetch fails when no source is left. A
// source whose connection ended while chunks came from it is asked again: fetches share
// connections, and one that makes no progress closes that of the others. All calls to a source end
// before the next one is asked. The room is given up only when nobody reads from it or writes to it
// any more. A failure reaches the clients that wait for the object as an Error; other fetches go
// on.
//
// Answers are known by the number of the fetch, which is never used again, and by the chunk.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "daemons/object_store/core/chunk_map.h"
#include "daemons/object_store/core/fetch_queue.h"
#include "daemons/object_store/core/fetch_sink.h"
#include "daemons/object_store/core/source_line.h"

namespace rt::store {

class Fetches {
 public:
  struct Options {
    int64_t capacity = 0;  // The capacity of the arena.
    int64_t chunk_bytes = 0;
    int64_t chunks_in_flight = 0;
    int64_t no_progress_us = 0;
    // So long sources that do not answer are asked again, unless their nodes are gone.
    int64_t patience_us = 0;
    // Bounds the bytes of all fetches under way; one fetch is always allowed.
    int64_t max_bytes = 0;
  };
  // `sink` must outlive the core.
  Fetches(Options options, FetchSink& sink);
  ~Fetches();

  // Implements StoreSink::fetch(). All orders are queued before the first one is launched. A fetch
  // fails with kTimeout when a source that may have the object has not answered, and otherwise with
  // kObjectLost.
  void start(std::vector<FetchOrder> orders, Now now);

  // These nodes have left the cluster for ever: nothing is fetched from them any more.
  void nodes_gone(const std::vector<NodeId>& nodes);

  // ---- answers to the sink's requests
  void connected(FetchId fetch);
  void connect_failed(FetchId fetch, const Error& why, Now now);
  struct Description {
    int64_t size = 0;
    WorkerId owner;
  };
  void described(FetchId fetch, const Result<Description>& answer, Now now);
  void created(FetchId fetch, const Result<int64_t>& offset, Now now);
  // Notes that the chunk is in the arena, from a copy of `total_size` bytes, or that it was not
  // sent.
  void pulled(FetchId fetch, size_t chunk, const Result<int64_t>& total_size, Now now);
  void piece_sent(FetchId fetch, Now now);

  // ---- requests of other nodes
  bool is_receiving(const ObjectId& object) const { return receiving(object) != nullptr; }
  // Answers another node that wants a range of an object that is_receiving(), once the range has
  // arrived.
  void read(CallId reader, const ObjectId& object, Range range);

  // ---- time
  void tick(Now now);
  // The steady time at which tick() has something to do, or -1.
  int64_t next_tick_us() const { return watched_.empty() ? -1 : watched_.begin()->first; }

  bool is_idle() const { return fetches_.empty() && queue_.is_empty(); }
  void check_invariants() const;

 private:
  enum class Step { kConnecting, kDescribing, kCreating, kPulling, kFinished };
  struct Reader {
    CallId call = 0;
    Range range;
  };
  struct Fetch {
    FetchId number = 0;
    ObjectId object;
    Step step = Step::kConnecting;
    SourceLine sources;
    // Set once no more chunks are requested from this source; the next source follows when all its
    // calls have ended.
    bool source_failed = false;
    // Set once chunks have come over this connection to the source, unless it was closed for want
    // of progress. Then another connection is worth a try.
    bool chunks_came = false;
    bool ask_again = false;  // Whether the failed source is asked again.
    Error last_error;        // Why the last source has failed.
    std::string last_asked;  // The address of the source that has failed last.
    WorkerId owner;
    int64_t offset = -1;  // The offset in the arena, once room is created.
    int64_t counted_bytes = 0;
    ChunkMap chunks;
    int64_t calls = 0;    // Calls to the source that have no answer yet.
    int64_t serving = 0;  // Pieces on their way to other nodes.
    bool sealed = false;
    int64_t progress_us = 0;
    int64_t watched_us = -1;  // When the progress of its calls is looked at next; -1: never.
    std::vector<Reader> readers;
  };

  Fetch* find(FetchId fetch);
  const Fetch* receiving(const ObjectId& object) const;
  void launch_queued(Now now);
  void next_source(Fetch& fetch, Now now);
  void fail_source(Fetch& fetch, const Error& why, Now now);
  // Goes on after the source has failed and all calls to it have ended.
  void leave_source(Fetch& fetch, Now now);
  void request_chunks(Fetch& fetch);
  void serve_readers(Fetch& fetch);
  void seal(Fetch& fetch);
  void fail(Fetch& fetch, const Error& why);
  // Fails the fetch because no source is left that may have the object.
  void fail_without_source(Fetch& fetch);
  // Forgets a finished fetch once nobody reads from its memory or writes to it any more. The
  // caller does not touch it afterwards.
  void forget_if_unused(Fetch& fetch);
  // Counts a call to the source, whose progress is watched.
  void begin_call(Fetch& fetch);
  void watch(Fetch& fetch);

  const Options options_;
  FetchSink& sink_;
  FetchQueue queue_;
  // The latest nodes that have left: who asks for an object may not know of that yet.
  std::deque<NodeId> gone_nodes_;
  // Fetches stay here until nobody touches their memory any more.
  std::unordered_map<FetchId, Fetch> fetches_;
  std::unordered_map<ObjectId, FetchId> by_object_;
  // The times at which the progress of fetches is looked at. An entry is moved when it is due, not
  // whenever there is progress.
  std::set<std::pair<int64_t, FetchId>> watched_;
  FetchId last_fetch_ = 0;
};

}  // namespace rt::store
