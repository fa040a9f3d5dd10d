// Drivers. A job lives from AddJob until its node-manager says that it ended, or its node dies.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "daemons/head/core/journal.h"
#include "daemons/head/core/types.h"

namespace rt::head {

class Jobs {
 public:
  explicit Jobs(Journal& journal) : journal_(journal) {}

  void recover(const proto::JobInfo& job);
  void recover_counter(uint32_t next) { next_ = std::max(next_, next); }

  // Takes the next id. The caller validated the request; writes are in the journal's current batch.
  proto::JobInfo& add(const proto::AddJobRequest& request, const std::string& default_namespace,
                      Now now);
  // A driver that asks again (its answer was lost): the job it has.
  const proto::JobInfo* of_driver(const proto::AddJobRequest& request) const;
  // The job's registration did not reach the disk.
  void remove(const JobId& id);
  // False when it is unknown or had finished.
  bool finish(const JobId& id, Now now);
  void forget_finished(size_t limit);

  const proto::JobInfo* find(const JobId& id) const;
  bool running(const JobId& id) const;
  std::vector<JobId> running_on(const NodeId& node) const;
  // Those that ended since `wall_ms` (all remembered ones for 0).
  std::vector<JobId> finished_since(int64_t wall_ms) const;
  const std::map<uint32_t, proto::JobInfo>& all() const { return jobs_; }
  // What belongs on disk for this key now.
  std::optional<std::string> record(const std::string& key) const;
  // Drivers there have been, those whose record is gone among them.
  int64_t started() const { return next_ - 1; }
  std::string counter() const { return std::to_string(next_); }
  void check_invariants() const;

 private:
  Journal& journal_;
  std::map<uint32_t, proto::JobInfo> jobs_;  // by number: in the order they came
  std::deque<uint32_t> finished_;
  uint32_t next_ = 1;
};

}  // namespace rt::head
