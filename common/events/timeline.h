// Chrome trace events of what processes recorded, in the two shapes of the timeline contract.
//
// A submission is a span "submit_task" on its owner's thread: as long as it took where the owner
// recorded that (it profiles), else a mark of a microsecond at the time that the task carries.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/events/task_events.h"

namespace rt {

class Timeline {
 public:
  struct Options {
    bool numbered = false;  // shape B, of HTTP: processes and threads are numbers, their names come
                            // at the end. Else shape A: they are names.
    bool arrows = false;    // from each submission to where it ran
    std::optional<JobId> job;  // of this one only
    int64_t since_us = 0;      // wall clock: only what ended at or after it
  };
  explicit Timeline(Options options) : options_(std::move(options)) {}

  // Appends members of the JSON array, its beginning with the first. Memory does not grow with the
  // events.
  void add(const TaskEventBatchData& batch, std::string* json);
  // Likewise, in pieces of about so many bytes. False: `take` said so of one, and did not get the
  // rest.
  bool add(const TaskEventBatchData& batch, size_t piece_bytes,
           const std::function<bool(const std::string&)>& take);
  // Appends the names of what is numbered, and the end of the array.
  void end(std::string* json);
  // Tasks and calls so far.
  int64_t shown() const { return shown_; }

 private:
  struct Thread {
    int process = 0, number = 0;
    std::string name;     // "worker:<hex>"
    std::string members;  // of its events: pid and tid
  };
  class Batch;
  const Thread& thread_of(const std::string& node_ip, const std::string& worker_hex,
                          bool is_driver);
  bool wants(const TaskEvent& event) const;
  // False: `after_each` event said so.
  template <typename AfterEach>
  bool write(const TaskEventBatchData& batch, std::string* json, AfterEach after_each);

  const Options options_;
  bool first_ = true;
  int64_t shown_ = 0, arrows_ = 0;
  std::map<std::string, int> processes_;   // by node ip
  std::map<std::string, Thread> threads_;  // by name
};

}  // namespace rt
