// The clients of the store, and what each of them holds.
#pragma once

#include <set>
#include <unordered_map>

#include "daemons/object_store/core/object_table.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

struct Pin {
  Object* object = nullptr;
  uint32_t count = 0;
};

struct Client {
  WorkerId worker;
  JobId job;
  int pid = 0;
  bool condemned = false;  // Set once the client broke the protocol; its requests are ignored.
  std::unordered_map<ObjectId, Object*> unsealed;
  std::unordered_map<ObjectId, Pin> pins;  // All pins on one id refer to the same object.
  std::set<uint64_t> extents;
};

class Clients {
 public:
  // The daemon's own parts are clients from the beginning.
  Clients() {
    all_[kFetcher];
    all_[kTransfer];
  }

  // Fails with kInvalid for the second call of a connection.
  Status attach(ClientId id, const WorkerId& worker, const JobId& job, int pid) {
    auto [it, is_new] = all_.try_emplace(id);
    if (!is_new) return make_error(Code::kInvalid, "attached twice");
    it->second.worker = worker;
    it->second.job = job;
    it->second.pid = pid;
    return {};
  }
  // Returns null for a client that is not attached.
  Client* find(ClientId id) {
    auto it = all_.find(id);
    return it == all_.end() ? nullptr : &it->second;
  }
  // Returns null for a client that is not attached or was condemned.
  Client* active(ClientId id) {
    Client* client = find(id);
    return client && client->condemned ? nullptr : client;
  }
  // The client must be attached.
  Client& at(ClientId id) { return all_.at(id); }
  const Client& at(ClientId id) const { return all_.at(id); }
  void erase(ClientId id) { all_.erase(id); }
  const std::unordered_map<ClientId, Client>& all() const { return all_; }

 private:
  std::unordered_map<ClientId, Client> all_;
};

}  // namespace rt::store
