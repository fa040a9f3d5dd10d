// The Fetches of a store, with models of the connections to other stores and of the memory into
// which chunks are written. The model knows which bytes have arrived, who writes and who reads, and
// which fetches are under way, and checks each decision against that.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "daemons/object_store/core/fetches.h"
#include "tests/sim/world.h"

namespace rt::sim {

class SimStore;

// A copy at a node, or a piece of it.
struct PullAnswer {
  int64_t total_size = 0;
};

class SimFetcher final : private store::FetchSink {
 public:
  // `store` must outlive it.
  SimFetcher(World& world, SimStore& store, int64_t capacity);

  // ---- from the StoreCore
  void start(const ObjectId& id, std::vector<store::Source> sources, bool first);
  void nodes_gone(const std::vector<NodeId>& nodes) {
    drive([&](store::Fetches& core, Now) { core.nodes_gone(nodes); });
  }
  void created(store::FetchId fetch, Result<int64_t> offset);

  // ---- from other stores
  bool is_receiving(const ObjectId& id) const { return core_.is_receiving(id); }
  // Answers with SimStore::send_piece() or SimStore::refuse_pull().
  void read(store::CallId reader, const ObjectId& id, store::Range range);
  void piece_sent(store::FetchId fetch);

  bool at_rest() const { return core_.is_idle() && running_.empty(); }

 private:
  // The connection to another store, or the fetches that wait for it.
  struct Peer {
    ChannelPtr channel;
    std::vector<store::FetchId> waiting;
  };
  // A fetch under way: what it counts towards the bound of bytes, and its memory.
  struct Running {
    ObjectId object;
    int64_t hint = 0;
    ChannelPtr source;
    std::optional<store::Range> room;
    std::map<int64_t, int64_t> written;  // sizes of the chunks, by offset in the object
    int64_t size = -1;                   // bytes of the copy that is being put together
    int64_t writers = 0, readers = 0;
  };
  struct Waiting {
    int64_t hint = 0;
    bool first = false;
  };

  // Sink
  void connect(store::FetchId fetch, const ObjectId& object, const store::Source& source) override;
  void describe(store::FetchId fetch, const ObjectId& object) override;
  void pull(const store::ChunkRequest& request) override;
  void close(store::FetchId fetch, const Error& why) override;
  void source_failed(const ObjectId& object, const std::string& source, const Error& why) override;
  void create(store::FetchId fetch, const store::CreateItem& item) override;
  void seal(const store::SealItem& item) override;
  void fail(const ObjectId& object, const Error& why) override;
  void end(store::FetchId fetch, const ObjectId& object, End how) override;
  void serve(store::CallId reader, const store::FetchedPiece& piece) override;
  void refuse(store::CallId reader, Error why) override;

  template <class F>
  void drive(F event) {
    event(core_, world_.clock.now());
    core_.check_invariants();
    arm_tick();
  }
  // Passes an event on later: a core is calling.
  void post(const char* what, std::function<void(store::Fetches&, Now)> event);
  void arm_tick();
  void connect_peer(const NodeId& node);
  void peer_connected(const NodeId& node, Result<ChannelPtr> channel);
  // The fetch of this object begins: it has to be its turn.
  Running& launched(store::FetchId fetch, const ObjectId& object);
  void chunk_arrived(const store::ChunkRequest& request, const Result<PullAnswer>& answer);
  // Whether these bytes of the object have arrived.
  static bool has(const Running& fetch, store::Range range);
  [[noreturn]] void wrong(const std::string& what) const;

  World& world_;
  SimStore& store_;
  const store::Fetches::Options options_;
  store::Fetches core_;
  std::map<NodeId, Peer> peers_;
  std::map<store::FetchId, Running> running_;
  std::map<ObjectId, Waiting> waiting_;  // for their launch
  std::vector<store::FetchOrder> orders_;
  Process::Alarm tick_alarm_;
};

}  // namespace rt::sim
