// The trace of tasks as the HTTP interface gives it: numbered processes and threads, with their names at the end (shape B of the timeline contract).
#pragma once

#include <map>
#include <string>

#include "common/events/task_events.h"

namespace rt {

class RestTimeline {
 public:
  // `job_id`: in hex; empty for all jobs.
  explicit RestTimeline(std::string job_id) : job_id_(std::move(job_id)) {}
  // The events of one process, as members of a JSON array. Memory does not grow with them.
  std::string add(const TaskEventBatchData& batch);
  // The names, and the end of the array.
  std::string end();

 private:
  struct Thread {
    int process = 0, number = 0;
    std::string name;
  };
  void add_event(const TaskEventBatchData& batch, const TaskEvent& event, const Thread& thread, std::string* out);
  void add_text(const std::string& text, std::string* out);
  Thread& thread_of(const TaskEventBatchData& batch);

  const std::string job_id_;
  bool first_ = true;
  std::map<std::string, int> processes_;           // by node ip
  std::map<std::string, Thread> threads_;          // by worker id
};

}  // namespace rt
