// The durable side of an event: all records that it changed leave as one atomic batch when it
// ends.
//
// If a batch fails (full disk), its continuations run with the error, so that they undo the
// request, and its records become dirty: their current state is written again every
// storage_retry_ms until that succeeds.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemons/head/core/head_sink.h"

namespace rt::head {

class Journal {
 public:
  using Continuation = std::function<void(const Status&, Now)>;

  // `sink` must outlive the journal.
  explicit Journal(HeadSink& sink);
  ~Journal();

  void put(const char* table, std::string key, std::string value) {
    add({table, std::move(key), std::move(value)});
  }
  void erase(const char* table, std::string key) { add({table, std::move(key), std::nullopt}); }
  // Runs `continuation` once the batch of the current event is on disk or has failed.
  void then(Continuation continuation) { continuations_.push_back(std::move(continuation)); }

  // Ends the event and sends its batch to the sink. If the event wrote nothing, returns its
  // continuations, which the caller must run.
  std::vector<Continuation> flush();
  // Returns the continuations that waited for batch `id`, which the caller must run with `status`.
  // If `status` is an error, the batch's records become dirty.
  std::vector<Continuation> persisted(uint64_t id, const Status& status);

  // Returns the (table, key) pairs of records that must be written again, and forgets them. A
  // record that is on its way to the disk is not among them: if that fails it becomes dirty again.
  std::set<std::pair<std::string, std::string>> take_dirty();
  bool has_dirty() const { return !dirty_.empty(); }
  // Returns the keys of a table whose records are dirty or on their way to the disk.
  std::set<std::string> unsettled(const std::string& table) const;
  size_t in_flight() const { return in_flight_.size(); }
  // Whether the disk has all that earlier events changed.
  bool settled() const { return dirty_.empty() && in_flight_.empty(); }

 private:
  struct InFlight {
    std::vector<std::pair<std::string, std::string>> keys;
    std::vector<Continuation> continuations;
  };
  void add(Write write);

  HeadSink& sink_;
  Batch batch_;
  // The index of a record in batch_.
  std::map<std::pair<std::string, std::string>, size_t> position_;
  std::vector<Continuation> continuations_;
  std::map<uint64_t, InFlight> in_flight_;
  std::set<std::pair<std::string, std::string>> dirty_;
  uint64_t last_id_ = 0;
};

}  // namespace rt::head
