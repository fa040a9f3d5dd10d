// One object store with its arena: a StoreCore and HeldCalls, with models of the connections of
// its clients, of the pages of its arena and of what comes from other nodes. All that it decides
// is compared with ArenaMemory and ArenaObjects.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "daemons/object_store/core/held_calls.h"
#include "daemons/object_store/core/store_core.h"
#include "tests/sim/arena_ledger.h"
#include "tests/sim/world.h"

namespace rt::sim {

// A value that other nodes have.
struct RemoteValue {
  int64_t size = 0;
  WorkerId owner;
  bool freed = false;          // by its owner, or with it
  bool owner_is_gone = false;  // as the store was told
};

// The state that all parts of one program share.
struct Arena {
  Arena(uint64_t seed, int64_t capacity, const NetworkOptions& options)
      : world(seed, options),
        memory(seed, capacity),
        capacity(capacity),
        node(NodeId::random(world.rng)) {}
  bool chance(double probability) { return world.rng.chance(probability); }
  int64_t between(int64_t low, int64_t high) { return world.between(low, high); }

  World world;
  ArenaMemory memory;
  ArenaObjects objects;
  const int64_t capacity;
  const NodeId node;  // the store's
  std::map<ObjectId, RemoteValue> remotes;
  double failing_fetches = 0;  // their share
  int64_t slowest_pages_us = 50'000;
  bool pages_are_short = false;  // the file system has only some of them, now and then
};

class ArenaUser;

class ArenaStore final : public Process, private store::StoreSink {
 public:
  template <class T>
  using Answer = Channel::Answer<T>;
  using Offsets = std::vector<int64_t>;
  using Answers = std::vector<store::GetAnswer>;
  struct Piece {
    int64_t total_size = 0;
  };

  ArenaStore(Arena& arena, int host);

  void accepted(const ChannelPtr& channel) override;
  // The node-manager says that these processes and jobs have ended.
  void owners_gone(const std::vector<WorkerId>& workers, const std::vector<JobId>& jobs);

  // ---- from clients
  void create(Channel& from, std::vector<store::CreateItem> items, bool wait,
              Answer<Offsets> answer);
  void lease(Channel& from, int64_t size, Answer<store::LeasedExtent> answer);
  void seal(Channel& from, const std::vector<store::SealItem>& items,
            const std::vector<uint64_t>& finished);
  void abort(Channel& from, const ObjectId& id);
  void get(Channel& from, std::vector<store::WantedItem> items, int64_t timeout_us,
           store::Ticket ticket, Answer<Answers> answer);
  void release(Channel& from, const std::vector<ObjectId>& ids, const std::vector<ObjectId>& told);
  void update_tasks(Channel& from, const std::vector<store::Ticket>& ended,
                    std::optional<bool> blocked);
  // Clients and other stores call this.
  void free(const ObjectId& id);
  // The client does what it may not do, which the core has to see.
  void break_rules(Channel& from, const char* what,
                   const std::function<void(store::StoreCore&, store::ClientId, Now)>& event);

  // ---- from other stores
  void pull(Channel& from, const ObjectId& id, store::Range range, Answer<Piece> answer);

  // Nothing is asked for, fetched or sent any more.
  bool is_quiet() const { return held_.is_empty() && fetches_.empty() && sending_ == 0; }
  // All room is free. Otherwise says what is left.
  std::string left() const;

 private:
  using Reply =
      std::variant<Answer<Offsets>, Answer<store::LeasedExtent>, Answer<Answers>, Answer<Piece>>;
  using Held = store::HeldCalls<Reply>;
  struct Client {
    ChannelPtr channel;
    ArenaUser* user = nullptr;  // null: another store
    int64_t extents = 0;        // leased to it
    bool is_condemned = false;
  };
  // A request that is not answered, with the objects that had to be found when it came, and those
  // that had not.
  struct Asked {
    store::ClientId client = 0;
    std::vector<store::CreateItem> items;
    store::Ticket ticket = 0;
    std::set<ObjectId> here, gone;
  };
  // A copy on its way, in the form that Fetches gives it.
  struct Fetch {
    ObjectId id;
    store::Range room;
  };

  // Sink
  void reply_create(store::ClientId client, store::CallId call, Result<Offsets> offsets) override;
  void reply_lease(store::ClientId client, store::CallId call,
                   Result<store::LeasedExtent> extent) override;
  void reply_get(store::ClientId client, store::CallId call, Answers answers) override;
  void disconnect(store::ClientId client, Error why) override;
  void reserve(int64_t up_to) override;
  void fetch(const ObjectId& id, const std::vector<store::Source>& sources, bool first) override;

  template <class F>
  void drive(F event) {
    event(core_, clock_.now());
    core_.check_invariants();
    check_waiters();
    arm_tick();
  }
  void arm_tick();
  // A client waits for room only while there is none.
  void check_waiters() const;
  // The arena must have a hole of at least so many bytes, in whatever way it is shared out.
  int64_t largest_hole() const;
  store::CallId hold(Channel& from, Reply reply, std::vector<store::CreateItem> items);
  bool asks_for(store::ClientId client, const ObjectId& id) const;
  // Null for a client that has ended, or is not believed any more.
  ArenaUser* reader(store::ClientId client) const;
  void client_gone(store::ClientId client);
  void send_piece(const Held::Call& pull, const store::GetAnswer& got);
  [[noreturn]] void wrong(const std::string& what) const;

  void begin_fetch(const ObjectId& id);
  void fetch_created(store::CallId fetch, const Result<Offsets>& offsets);
  void fill(store::CallId fetch);
  void fetch_failed(store::CallId fetch);
  void end_fetch(store::CallId fetch);

  Arena& arena_;
  store::StoreCore core_;
  std::map<store::ClientId, Client> clients_;
  Held held_;
  std::map<store::CallId, Asked> asked_;
  std::map<store::CallId, Fetch> fetches_;
  std::set<ObjectId> later_;  // to be fetched when the fetch before has ended
  store::CallId last_fetch_ = 0;
  int64_t sending_ = 0;
  Alarm tick_alarm_;
};

inline ArenaStore& arena_at(Channel& arrived) {
  return static_cast<ArenaStore&>(*arrived.process());
}
inline store::ClientId client_of(const Channel& channel) {
  return store::kFirstClient + channel.connection();
}

}  // namespace rt::sim
