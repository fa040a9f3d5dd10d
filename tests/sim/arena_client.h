// A process that stores objects, for itself and for others, and reads them: large ones in room of
// their own and small ones in extents, which it cuts with the ExtentPool of real clients.
#pragma once

#include <map>
#include <set>

#include "daemons/object_store/client/extent_pool.h"
#include "tests/sim/arena_user.h"

namespace rt::sim {

class ArenaClient;

// The clients of one program, and the objects that they know of.
struct ArenaSociety {
  std::map<WorkerId, ArenaClient*> living;
  // Objects that may be asked for, and their owners. The newest come last.
  std::vector<std::pair<ObjectId, WorkerId>> stored;
  std::set<ObjectId> freed;  // by owners that live or have lived
  double small = 0.5;        // the share of objects that are small
  double largest = 0.2;      // the share of the arena that the largest objects take
  uint64_t last_task = 0;
};

class ArenaClient final : public ArenaUser {
 public:
  // `society` must outlive it.
  ArenaClient(Arena& arena, int host, ArenaStore& store, ArenaSociety& society);

  // Something at random.
  void act();
  void break_a_rule();
  bool is_idle() const {
    return !alive() || (asking_ == 0 && writing_.empty() && held_.empty() && owned_.empty());
  }
  std::string describe() const;

 private:
  void ready() override { society_.living[worker()] = this; }
  void put(const ObjectId& id, const WorkerId& owner);
  void put_large(std::vector<store::CreateItem> items);
  void want_extent();
  void write(const store::SealItem& item);
  // The object is whole, or not wanted any more.
  void finish(const store::SealItem& item);
  void seal_one(const store::SealItem& item);
  void hold(const ObjectId& id) { ++held_[id]; }
  void give_back(const ObjectId& id, bool told);
  void read_some();
  void got(const ObjectId& id, const store::GetAnswer& answer);
  // From another client, which has stored an object of this one, and holds it until the answer.
  void stored(const ObjectId& id, ArenaClient& by);
  void free_later(const ObjectId& id);
  ObjectId new_id();

  ArenaSociety& society_;
  store::ExtentPool pool_;
  std::map<uint64_t, store::LeasedExtent> extents_;
  bool is_leasing_ = false;
  int64_t asking_ = 0;
  std::set<ObjectId> writing_;
  std::multiset<ObjectId> wanted_;
  std::map<ObjectId, int> held_;
  std::set<ObjectId> owned_;  // and not freed
  std::optional<store::SealItem> last_small_;
};

}  // namespace rt::sim
