// Converts task events and the lives of placement groups into Chrome trace events, in one of two
// shapes: that of ray.timeline() and that of Ray's HTTP interface.
//
// A submission becomes a span "submit_task" on the thread of the owner. If the owner profiles, it
// has recorded how long the submission took; otherwise the span is one microsecond long, at the
// time of submission that the task's event carries.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "observability/events/task_events.h"

namespace rt {
namespace proto {
class ListGroupsReply;
}

// Writes one trace as the members of a JSON array, batch by batch. Not thread-safe.
class Timeline {
 public:
  struct Options {
    // Shape B, of HTTP: processes and threads are numbers, and their names come at the end.
    // Otherwise shape A, of ray.timeline(): processes and threads are names.
    bool numbered = false;
    bool arrows = false;       // draw arrows from submissions to where the tasks ran
    std::optional<JobId> job;  // only events of this job
    int64_t since_us = 0;      // only events that ended at or after this wall clock time
  };
  explicit Timeline(Options options) : options_(std::move(options)) {}

  // Appends the events of a batch to `json`; the first one opens the array. The memory of the
  // Timeline grows with the number of processes, not of events.
  void add(const TaskEventBatchData& batch, std::string* json);
  // The same, but passes pieces of about `piece_bytes` bytes to `take`. When `take` returns false,
  // the rest of the batch is skipped and the function returns false.
  bool add(const TaskEventBatchData& batch, size_t piece_bytes,
           const std::function<bool(const std::string&)>& take);
  // Appends a span "waiting" and a span "created" of each group, and an instant "lost bundles" if
  // it lost some, in rows of the process "placement groups"; a row shows one group after the other.
  // From more than kMostGroups groups it draws those that live or ended last, and an instant says
  // how many are left out. To be called at most once, with the wall clock.
  void add_groups(const proto::ListGroupsReply& groups, int64_t now_us, std::string* json);
  // Appends the names of numbered processes and threads, and closes the array.
  void end(std::string* json);
  // The number of tasks and calls written so far, without spans.
  int64_t shown() const { return shown_; }
  int64_t groups_shown() const { return groups_shown_; }
  int64_t groups_left_out() const { return groups_left_out_; }

  // So many groups can live at once, and viewers become slow with more rows.
  static constexpr int64_t kMostGroups = 1000;

 private:
  struct Thread {
    int process = 0, number = 0;
    std::string name;     // "worker:<hex>", "driver:<hex>" or "row <number>"
    std::string members;  // the JSON members pid and tid of its events
  };
  class Batch;
  static constexpr const char* kGroupProcess = "placement groups";
  const Thread& thread_of(const std::string& node_ip, const std::string& worker_hex,
                          bool is_driver);
  // `process` is the ip of a node, or kGroupProcess.
  const Thread& named_thread(const std::string& process, std::string name);
  bool wants(const TaskEvent& event) const;
  // Calls after_each() behind each event; returns false as soon as that does.
  template <typename AfterEach>
  bool write(const TaskEventBatchData& batch, std::string* json, AfterEach after_each);

  const Options options_;
  bool first_ = true;
  int64_t shown_ = 0, arrows_ = 0, groups_shown_ = 0, groups_left_out_ = 0;
  std::map<std::string, int> processes_;   // by node ip or kGroupProcess
  std::map<std::string, Thread> threads_;  // by name
};

}  // namespace rt
