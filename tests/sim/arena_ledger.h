// The truth about one store's arena, as its clients see it.
//
// ArenaMemory knows for each unit of 64 bytes who may write to it, how many pins of living
// processes are on it, and of which object its bytes are. ArenaObjects knows which objects were
// sealed, told of and freed, in the order in which the store heard of it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "daemons/object_store/core/types.h"

namespace rt::sim {

class ArenaMemory {
 public:
  ArenaMemory(uint64_t seed, int64_t capacity)
      : seed_(seed), units_(static_cast<size_t>(capacity / store::kUnit)) {}

  // The client may write here from now on. Nobody else may have anything there.
  void granted(store::ClientId client, store::Range range);
  void wrote(store::ClientId client, store::Range range, const ObjectId& id);
  // The client writes no more to what it may still write to in this range.
  void given_up(store::ClientId client, store::Range range);
  // The client has a pin on what it has written.
  void sealed(store::ClientId client, store::Range range, const ObjectId& id);
  // The client was given a pin on the object, which is said to be here.
  void pinned(store::ClientId client, store::Range range, const ObjectId& id);
  // The client looks at an object that it has pinned.
  void read(store::ClientId client, const ObjectId& id) const;
  void released(store::ClientId client, const ObjectId& id);
  // The process has ended; it neither reads nor writes any more.
  void ended(store::ClientId client);

 private:
  struct Unit {
    store::ClientId writer = 0;
    int pins = 0;
    int value = 0;  // the number of the object that was written here
  };
  struct Pinned {
    store::Range range;
    int count = 0;
  };

  [[noreturn]] void wrong(store::ClientId client, const std::string& what) const;
  template <class F>
  void for_each(store::Range range, F&& f);
  void pin(store::ClientId client, store::Range range, const ObjectId& id);
  void unpin(const Pinned& pinned);
  int number_of(const ObjectId& id) { return values_.try_emplace(id, ++last_value_).first->second; }

  const uint64_t seed_;
  std::vector<Unit> units_;
  std::map<ObjectId, int> values_;
  int last_value_ = 0;
  std::map<store::ClientId, std::map<ObjectId, Pinned>> pins_;
};

class ArenaObjects {
 public:
  void sealed(store::ClientId client, const WorkerId& worker, const store::SealItem& item);
  void pinned(store::ClientId client, const ObjectId& id) { all_[id].pins.insert(client); }
  void told(store::ClientId client, const ObjectId& id);
  void released(store::ClientId client, const ObjectId& id);
  void freed(const ObjectId& id) { all_[id].freed = true; }
  void owner_gone(const WorkerId& owner);
  void client_gone(store::ClientId client);

  // Whether whoever asks has to find it: nobody has freed it, and somebody knows of it.
  bool must_be_found(const ObjectId& id) const;
  // Whether this client may not find it: it was freed, and this client does not hold it.
  bool must_be_gone(store::ClientId client, const ObjectId& id) const;

 private:
  struct Stored {
    WorkerId owner;
    std::multiset<store::ClientId> pins;
    int seals = 0;  // nothing is said of what was sealed twice: it may be either of the two
    bool is_copy = false, owner_knows = false, freed = false;
  };

  std::map<ObjectId, Stored> all_;
  std::set<WorkerId> gone_;
};

}  // namespace rt::sim
