// The object store of a node: a StoreCore with models of its clients' connections and of the pages
// of its arena, and the transfers from other nodes (sim_fetcher.h).
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "common/proto/object_store.pb.h"
#include "daemons/object_store/core/held_calls.h"
#include "daemons/object_store/core/store_core.h"
#include "tests/sim/sim_fetcher.h"
#include "tests/sim/world.h"

namespace rt::sim {

inline constexpr int64_t kTransferBytesPerUs = 500;

class SimStore final : public Process, private store::StoreSink {
 public:
  SimStore(World& world, int host, const NodeId& node, int64_t capacity);

  void accepted(const ChannelPtr& channel) override;
  // The value lies here from now on, whatever happens.
  void put(const ObjectId& id, int64_t size);
  // A task has made the value for this owner, and told it so: it lies here as long as the owner is
  // there.
  void put_for(const WorkerId& owner, const ObjectId& id, int64_t size);
  // Whether all that is held here was put(), no task has left a value behind, and nobody waits.
  bool at_rest() const;
  int64_t capacity() const { return core_.stats().capacity; }
  void stop(Exit how = Exit::kOrderly) { end(how); }
  // From its node-manager: these processes have ended, and these jobs are over.
  void owners_gone(const proto::OwnersGone& gone);

  // ---- from workers
  // Answers with StoreUser::on_arguments().
  void get_arguments(Channel& from, store::Ticket ticket, const std::vector<StoredValue>& values);
  // The task that got them has ended, or is not wanted any more. `got`: it had an answer.
  void end_task(Channel& from, store::Ticket ticket, const std::vector<StoredValue>& values,
                bool got);
  void set_blocked(Channel& from, bool blocked);
  // Answers with StoreUser::on_arguments(), also a `ticket` of 0.
  void get(Channel& from, store::CallId call, const ObjectId& id,
           std::vector<store::Source> sources, store::Ticket ticket);
  void release(Channel& from, const ObjectId& id);
  // Answers with StoreUser::on_room().
  void create(Channel& from, const StoredValue& value);
  void free(Channel& from, const ObjectId& id);

  // ---- from other stores
  // A part of an object, once it is here.
  void serve_pull(Channel& from, const ObjectId& id, store::Range range,
                  Channel::Answer<PullAnswer> answer);

  // ---- from its fetcher
  template <class F>
  void drive(F event) {
    event(core_, clock_.now());
    core_.check_invariants();
    arm_tick();
  }
  using Process::after;
  using Process::ring_by;
  // Answer serve_pull().
  void send_piece(store::CallId reader, const store::FetchedPiece& piece);
  void refuse_pull(store::CallId reader, const Error& why);

 private:
  // Sink
  void reply_create(store::ClientId client, store::CallId call,
                    Result<std::vector<int64_t>> offsets) override;
  void reply_lease(store::ClientId, store::CallId, Result<store::LeasedExtent>) override {}
  void reply_get(store::ClientId client, store::CallId call,
                 std::vector<store::GetAnswer> answers) override;
  void disconnect(store::ClientId client, Error why) override;
  void reserve(int64_t up_to) override;
  void fetch(const ObjectId& id, const std::vector<store::Source>& sources, bool first) override;

  void arm_tick();
  // Where a value is, with stores that may have a copy of it.
  std::vector<store::Source> sources_of(const StoredValue& value);
  // The answer to a request of another store for a sealed object.
  void answer_pull(store::CallId call, const store::GetAnswer& got);
  void seal(store::ClientId client, const store::CreateItem& item, int64_t offset);
  static store::ClientId client_of(const Channel& channel);

  struct Client {
    ChannelPtr channel;
    WorkerId worker;  // nil: another kind of process
  };
  // Requests that are answered later: for room, and of other stores for pieces of objects.
  using Held = store::HeldCalls<std::variant<store::CreateItem, Channel::Answer<PullAnswer>>>;

  World& world_;
  const NodeId node_;
  store::StoreCore core_;
  SimFetcher fetcher_;
  std::map<store::ClientId, Client> clients_;
  Held held_;
  int64_t put_bytes_ = 0;
  Alarm tick_alarm_;
};

inline SimStore& store_at(Channel& arrived) { return static_cast<SimStore&>(*arrived.process()); }

}  // namespace rt::sim
