// The durable side of an event: every record it changed leaves as one atomic batch when the event
// ends.
//
// A batch that fails (full disk) runs its continuations with the error - they undo the request -
// and marks its records dirty: their state at that later time is written again every
// storage_retry_ms until it succeeds.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemons/head/core/sink.h"

namespace rt::head {

class Journal {
 public:
  using Continuation = std::function<void(const Status&, Now)>;

  // `sink` outlives the journal.
  explicit Journal(HeadSink& sink) : sink_(sink) {}

  void put(const char* table, std::string key, std::string value) {
    add({table, std::move(key), std::move(value)});
  }
  void erase(const char* table, std::string key) { add({table, std::move(key), std::nullopt}); }
  // Runs once the batch of the current event is on disk, or was refused.
  void then(Continuation continuation) { continuations_.push_back(std::move(continuation)); }

  // Ends the event. Continuations of an event that wrote nothing are due at once: returned, to be
  // run by the caller.
  std::vector<Continuation> flush();
  // What waited for batch `id`; to be run by the caller with `status`.
  std::vector<Continuation> persisted(uint64_t id, const Status& status);

  // Records to be written again, and forgets them.
  std::set<std::pair<std::string, std::string>> take_dirty() { return std::move(dirty_); }
  bool has_dirty() const { return !dirty_.empty(); }
  size_t in_flight() const { return in_flight_.size(); }

 private:
  struct InFlight {
    std::vector<std::pair<std::string, std::string>> keys;
    std::vector<Continuation> continuations;
  };
  void add(Write write);

  HeadSink& sink_;
  Batch batch_;
  std::map<std::pair<std::string, std::string>, size_t> position_;  // of a record in batch_
  std::vector<Continuation> continuations_;
  std::map<uint64_t, InFlight> in_flight_;
  std::set<std::pair<std::string, std::string>> dirty_;
  uint64_t last_id_ = 0;
};

}  // namespace rt::head
