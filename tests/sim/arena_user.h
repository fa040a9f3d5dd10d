// A process with a connection to the store. What it asks for and gives back is known to
// ArenaMemory at the moment at which it says so; after its end it neither reads nor writes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/arena_store.h"

namespace rt::sim {

class ArenaUser : public Process {
 public:
  // `ready` is called once the process may do something.
  ArenaUser(Arena& arena, int host, ArenaStore& store);

  const WorkerId& worker() const { return worker_; }
  bool breaks_rules() const { return breaks_rules_; }
  void stop(Exit how);
  std::function<void()> on_end;  // called when the process has ended

 protected:
  template <class T>
  using Done = std::function<void(T)>;

  // Called once the store knows the process.
  virtual void ready() {}
  bool is_ready() const { return channel_ != nullptr && !breaks_rules_; }
  store::ClientId client() const { return client_of(*channel_); }

  // Answered with the places of the objects, or with nothing.
  void create(std::vector<store::CreateItem> items, bool wait,
              Done<Result<std::vector<int64_t>>> done);
  void lease(int64_t size, Done<Result<store::LeasedExtent>> done);
  // The extents in `finished` are ranges in which the process writes nothing more.
  void seal(const store::SealItem& item, const std::vector<store::LeasedExtent>& finished);
  void abort(const ObjectId& id, store::Range range);
  void get(std::vector<store::WantedItem> items, int64_t timeout_us, store::Ticket ticket,
           Done<std::vector<store::GetAnswer>> done);
  void release(const std::vector<ObjectId>& ids, const std::vector<ObjectId>& told);
  void free(const ObjectId& id);
  void update_tasks(std::vector<store::Ticket> ended, std::optional<bool> blocked);
  // Breaks the rules with `event`, which is the last that the process does.
  void break_rules(const char* what,
                   std::function<void(store::StoreCore&, store::ClientId, Now)> event);

  Arena& arena_;

 private:
  const WorkerId worker_;
  ChannelPtr channel_;
  bool breaks_rules_ = false;
};

}  // namespace rt::sim
