#include "daemons/object_store/core/getters.h"

#include <utility>

namespace rt::store {

uint64_t Getters::open(Request request) {
  uint64_t id = next_id_++;
  request.open = request.items.size();
  requests_.emplace(id, std::move(request));
  return id;
}

Getters::Request* Getters::find(uint64_t request) {
  auto it = requests_.find(request);
  return it == requests_.end() ? nullptr : &it->second;
}

const Getters::Request* Getters::find(uint64_t request) const {
  auto it = requests_.find(request);
  return it == requests_.end() ? nullptr : &it->second;
}

void Getters::wait(Place place, const ObjectId& id) {
  for (auto [it, end] = waiting_.equal_range(id); it != end; ++it) {
    if (it->second.request == place.request && it->second.item == place.item) return;
  }
  waiting_.emplace(id, place);
}

void Getters::answer(Place place, GetAnswer answer) {
  Request& request = requests_.at(place.request);
  Item& item = request.items[place.item];
  RT_CHECK(!item.done);
  item.done = true;
  item.answer = std::move(answer);
  request.open--;
  for (auto [it, end] = waiting_.equal_range(item.id); it != end; ++it) {
    if (it->second.request == place.request && it->second.item == place.item) {
      waiting_.erase(it);
      break;
    }
  }
}

std::vector<Getters::Place> Getters::waiting_for(const ObjectId& id) const {
  std::vector<Place> places;
  for (auto [it, end] = waiting_.equal_range(id); it != end; ++it) places.push_back(it->second);
  return places;
}

void Getters::fail_fetch(const ObjectId& id, const Error& error) {
  for (Place place : waiting_for(id)) {
    Request* request = find(place.request);
    if (!request || request->items[place.item].sources.empty()) continue;
    request->items[place.item].fetch_failed = true;
    request->items[place.item].error = error;
  }
}

Getters::Request Getters::remove(uint64_t id) {
  Request& request = requests_.at(id);
  for (size_t i = 0; i < request.items.size(); i++) {
    if (!request.items[i].done) answer({id, i}, {});
  }
  Request taken = std::move(request);
  requests_.erase(id);
  // The request's timers stay until they are due, which is cheap. They are removed here before too
  // many pile up behind long timeouts.
  if (timers_.size() > 1024 && timers_.size() > 4 * requests_.size()) {
    std::erase_if(timers_, [this](auto& timer) { return !requests_.count(timer.second.request); });
  }
  return taken;
}

std::vector<uint64_t> Getters::of_client(ClientId client) const {
  std::vector<uint64_t> found;
  for (auto& [id, request] : requests_) {
    if (request.client == client) found.push_back(id);
  }
  return found;
}

void Getters::set_timer(int64_t at_us, Place place) { timers_.emplace(at_us, place); }

std::optional<Getters::Place> Getters::next_due(Now now) {
  while (!timers_.empty() && timers_.begin()->first <= now.steady_us) {
    Place place = timers_.begin()->second;
    timers_.erase(timers_.begin());
    Request* request = find(place.request);
    if (request && (place.item == kWhole || !request->items[place.item].done)) return place;
  }
  return std::nullopt;
}

std::optional<int64_t> Getters::next_timer() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first;
}

void Getters::check_invariants() const {
  size_t open = 0;
  for (auto& [id, request] : requests_) {
    size_t here = 0;
    for (auto& item : request.items) here += item.done ? 0 : 1;
    RT_CHECK(here == request.open && here > 0);
    if (!request.in_line) open += here;
  }
  RT_CHECK(open == waiting_.size());
  for (auto& [id, place] : waiting_) RT_CHECK(requests_.count(place.request) == 1);
}

}  // namespace rt::store
