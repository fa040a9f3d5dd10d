#include "daemons/object_store/core/argument_line.h"

#include <iterator>

namespace rt::store {

void ArgumentLine::join(const Entry& entry) {
  RT_CHECK(!is_known(entry.client, entry.ticket));
  line_.push_back(entry);
  place_[{entry.client, entry.ticket}] = std::prev(line_.end());
}

bool ArgumentLine::is_known(ClientId client, Ticket ticket) const {
  auto held = held_.find(client);
  if (held != held_.end() && held->second.tickets.contains(ticket)) return true;
  return place_.contains({client, ticket});
}

ArgumentLine::Entry* ArgumentLine::in_line(ClientId client, Ticket ticket) {
  auto place = place_.find({client, ticket});
  return place == place_.end() ? nullptr : &*place->second;
}

bool ArgumentLine::has_in_line(ClientId client) const {
  auto place = place_.lower_bound({client, 0});
  return place != place_.end() && place->first.first == client;
}

void ArgumentLine::admit(std::list<Entry>::iterator entry) {
  held_[entry->client].tickets.insert(entry->ticket);
  drop(entry);
}

void ArgumentLine::drop(std::list<Entry>::iterator entry) {
  place_.erase({entry->client, entry->ticket});
  line_.erase(entry);
  if (line_.empty()) stuck_since_us = 0;
}

std::optional<uint64_t> ArgumentLine::leave(ClientId client, Ticket ticket) {
  auto waiting = place_.find({client, ticket});
  if (waiting != place_.end()) {
    uint64_t request = waiting->second->request;
    drop(waiting->second);
    return request;
  }
  auto held = held_.find(client);
  if (held != held_.end()) held->second.tickets.erase(ticket);
  return std::nullopt;
}

void ArgumentLine::set_blocked(ClientId client, bool blocked) { held_[client].blocked = blocked; }

void ArgumentLine::client_gone(ClientId client) {
  held_.erase(client);
  for (auto entry = line_.begin(); entry != line_.end();) {
    auto next = std::next(entry);
    if (entry->client == client) drop(entry);
    entry = next;
  }
}

void ArgumentLine::check_invariants() const {
  RT_CHECK(line_.size() == place_.size());
  RT_CHECK(stuck_since_us == 0 || !line_.empty());
  for (auto entry = line_.begin(); entry != line_.end(); ++entry) {
    auto place = place_.find({entry->client, entry->ticket});
    RT_CHECK(place != place_.end() && place->second == entry);
    auto held = held_.find(entry->client);
    RT_CHECK(held == held_.end() || !held->second.tickets.contains(entry->ticket));
  }
}

}  // namespace rt::store
