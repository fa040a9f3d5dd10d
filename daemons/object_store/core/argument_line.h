// The arguments of tasks: requests that wait in line for room, and the tasks that hold what they
// were given.
//
// A task's arguments are admitted as a whole, in the order of the requests, so that no two tasks
// hold a part each and wait for the rest. An admitted task counts as one that makes room when it
// ends, unless its process says that it is blocked. As long as there is such a task, the line
// waits without limit. This class only keeps the books; StoreCore decides who is admitted.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "daemons/object_store/core/types.h"

namespace rt::store {

class ArgumentLine {
 public:
  struct Entry {
    uint64_t request = 0;  // The number of the request in Getters.
    ClientId client = 0;
    Ticket ticket = 0;
    int64_t joined_us = 0;
    int64_t bytes = 0;  // The room that it needed when StoreCore looked last.
    bool told = false;  // Whether its client knows that it waits.
  };

  // A client must not use a ticket twice.
  void join(const Entry& entry);
  bool is_known(ClientId client, Ticket ticket) const;
  // Returns null when the entry is not in line.
  Entry* in_line(ClientId client, Ticket ticket);
  // Whether the client has an entry in line.
  bool has_in_line(ClientId client) const;
  // Takes the entry out of the line: its task now holds its arguments.
  void admit(std::list<Entry>::iterator entry);
  // Takes the entry out of the line without an admission.
  void drop(std::list<Entry>::iterator entry);
  // Notes that the task has ended, or was given up. Returns its request if that was still in line.
  std::optional<uint64_t> leave(ClientId client, Ticket ticket);
  void set_blocked(ClientId client, bool blocked);
  // Forgets the client with all its tickets; the caller removes its requests.
  void client_gone(ClientId client);

  bool is_empty() const { return line_.empty(); }
  std::list<Entry>& line() { return line_; }
  const std::list<Entry>& line() const { return line_; }
  // Calls `f(client)` for every client that has admitted tasks and is not blocked.
  template <class F>
  void for_each_running(F&& f) const {
    for (const auto& [client, held] : held_) {
      if (!held.tickets.empty() && !held.blocked) f(client);
    }
  }
  // Since when the first in line cannot expect room, or 0. Set by StoreCore.
  int64_t stuck_since_us = 0;
  void check_invariants() const;

 private:
  struct Held {
    std::set<Ticket> tickets;
    bool blocked = false;
  };
  std::list<Entry> line_;  // The oldest comes first.
  std::map<std::pair<ClientId, Ticket>, std::list<Entry>::iterator> place_;
  std::map<ClientId, Held> held_;  // Ordered, so that decisions are reproducible.
};

}  // namespace rt::store
