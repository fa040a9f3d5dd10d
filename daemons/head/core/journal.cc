#include "daemons/head/core/journal.h"

namespace rt::head {

Journal::Journal(HeadSink& sink) : sink_(sink) {}

Journal::~Journal() = default;

void Journal::add(Write write) {
  auto [it, added] = position_.try_emplace({write.table, write.key}, batch_.size());
  if (added) {
    batch_.push_back(std::move(write));
  } else {
    // Only a record's last state within an event counts.
    batch_[it->second] = std::move(write);
  }
}

std::vector<Journal::Continuation> Journal::flush() {
  std::vector<Continuation> due;
  due.swap(continuations_);
  if (batch_.empty()) return due;
  InFlight& entry = in_flight_[++last_id_];
  entry.continuations = std::move(due);
  for (const auto& [key, index] : position_) entry.keys.push_back(key);
  Batch batch;
  batch.swap(batch_);
  position_.clear();
  sink_.persist(last_id_, std::move(batch));
  return {};
}

std::vector<Journal::Continuation> Journal::persisted(uint64_t id, const Status& status) {
  auto it = in_flight_.find(id);
  if (it == in_flight_.end()) return {};
  if (!status) dirty_.insert(it->second.keys.begin(), it->second.keys.end());
  auto due = std::move(it->second.continuations);
  in_flight_.erase(it);
  return due;
}

std::set<std::pair<std::string, std::string>> Journal::take_dirty() {
  auto due = std::exchange(dirty_, {});
  for (const auto& [id, batch] : in_flight_) {
    for (const auto& key : batch.keys) due.erase(key);
  }
  return due;
}

std::set<std::string> Journal::unsettled(const std::string& table) const {
  std::set<std::string> keys;
  for (auto it = dirty_.lower_bound({table, ""}); it != dirty_.end() && it->first == table; ++it)
    keys.insert(it->second);
  for (const auto& [id, batch] : in_flight_) {
    for (const auto& [name, key] : batch.keys) {
      if (name == table) keys.insert(key);
    }
  }
  return keys;
}

}  // namespace rt::head
