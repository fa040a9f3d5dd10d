// Drivers. A job lives from AddJob until its node-manager reports its end, or its node dies.
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
  explicit Jobs(Journal& journal);
  ~Jobs();

  void recover(const proto::JobInfo& job);
  void recover_counter(uint32_t next) { next_ = std::max(next_, next); }

  // Adds a job with the next id. The caller has validated the request; the writes are part of the
  // journal's current batch.
  proto::JobInfo& add(const proto::AddJobRequest& request, const std::string& default_namespace,
                      Now now);
  // Returns the running job of the driver that sends this request, or null. A driver repeats its
  // request when the first answer was lost.
  const proto::JobInfo* of_driver(const proto::AddJobRequest& request) const;
  // Forgets a job whose registration did not reach the disk.
  void remove(const JobId& id);
  // Returns false when the job is unknown or has finished already.
  bool finish(const JobId& id, Now now);
  // Forgets the oldest finished jobs beyond `limit`.
  void forget_finished(size_t limit);

  const proto::JobInfo* find(const JobId& id) const;
  bool running(const JobId& id) const;
  std::vector<JobId> running_on(const NodeId& node) const;
  // Returns the finished jobs that are remembered.
  std::vector<JobId> finished() const;
  const std::map<uint32_t, proto::JobInfo>& all() const { return jobs_; }
  // Returns the value that belongs on disk under `key`, or nothing when there is no such job.
  std::optional<std::string> record(const std::string& key) const;
  // Returns the number of drivers so far, including those whose record is forgotten.
  int64_t started() const { return next_ - 1; }
  std::string counter() const { return std::to_string(next_); }
  void check_invariants() const;

 private:
  Journal& journal_;
  // By job number, which is the order of registration.
  std::map<uint32_t, proto::JobInfo> jobs_;
  std::deque<uint32_t> finished_;
  uint32_t next_ = 1;
};

}  // namespace rt::head
