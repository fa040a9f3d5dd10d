// Carries out the decisions of Fetches: connections to the stores of other nodes, calls that have
// chunks written straight to their place in the arena, and views of what has arrived for other
// nodes. Everything runs in the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "common/net/core_driver.h"
#include "common/net/loop.h"
#include "daemons/object_store/core/fetches.h"
#include "daemons/object_store/core/store_core.h"
#include "daemons/object_store/service/peers.h"
#include "daemons/object_store/shm/arena.h"

namespace rt::store {

class Fetcher final : private FetchSink {
 public:
  // A range of an object, for another node.
  struct Piece {
    OwnedBytes bytes;
    int64_t total_size = 0;
    WorkerId owner;
  };
  // Runs `event` on StoreCore, and then what must follow every event (timers).
  using OnCore = std::function<void(const std::function<void(StoreCore&, Now)>& event)>;
  // Is called with the answer to a read(), perhaps before read() returns.
  using OnPiece = std::function<void(CallId reader, Result<Piece> piece)>;
  Fetcher(net::Loop& loop, Peers& peers, Arena& arena, Fetches::Options options, OnCore on_core,
          OnPiece on_piece);
  ~Fetcher() override;

  // Implements StoreSink::fetch().
  void start(const ObjectId& id, std::vector<Source> sources, bool first);
  // Implements StoreSink::reply_create() for kFetcher.
  void on_created(CallId call, Result<std::vector<int64_t>> offsets);

  void nodes_gone(const std::vector<NodeId>& nodes) {
    driver_.drive([&](Fetches& core, Now) { core.nodes_gone(nodes); });
  }

  bool is_receiving(const ObjectId& id) const { return driver_.core().is_receiving(id); }
  // Answers another node that wants a range of an object that is_receiving().
  void read(CallId reader, const ObjectId& id, Range range) {
    driver_.drive([&](Fetches& core, Now) { core.read(reader, id, range); });
  }
  // For tests: checks that the whole state is consistent.
  void check_invariants() const { driver_.core().check_invariants(); }

 private:
  // The methods of FetchSink.
  void connect(FetchId fetch, const ObjectId& object, const Source& source) override;
  void describe(FetchId fetch, const ObjectId& object) override;
  void pull(const ChunkRequest& request) override;
  void close(FetchId fetch, const Error& why) override;
  void source_failed(const ObjectId& object, const std::string& source, const Error& why) override;
  void create(FetchId fetch, const CreateItem& item) override;
  void seal(const SealItem& item) override;
  void fail(const ObjectId& object, const Error& why) override;
  void end(FetchId fetch, const ObjectId& object, End how) override;
  void serve(CallId reader, const FetchedPiece& piece) override;
  void refuse(CallId reader, Error why) override;

  // Passes an event on later, because a core is calling, which must not be called back.
  template <class Event>
  void post(Event event);

  net::Loop& loop_;
  Peers& peers_;
  Arena& arena_;
  const OnCore on_core_;
  const OnPiece on_piece_;
  net::CoreDriver<Fetches> driver_;
  // Has the connection to its source for each fetch that has one. It is shared with Peers and with
  // the other fetches from the same node.
  std::unordered_map<FetchId, std::shared_ptr<rpc::Connection>> connections_;
  std::vector<FetchOrder> orders_;  // The orders of the StoreCore's event that runs now.
  // Callbacks that run after the destructor see it expired.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::store
