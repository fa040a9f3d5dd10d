// Decides which processes are admitted to the node: workers that it has started, and drivers, whose
// jobs the head begins and is to finish. A process that comes before the node has joined its
// cluster waits for that.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "daemons/node_manager/core/driver_jobs.h"
#include "daemons/node_manager/core/types.h"

namespace rt::node {

class NodeCore;

class AdmissionDesk {
 public:
  // The bound of those that wait for the node to join its cluster.
  static constexpr size_t kMostWaiting = 10'000;

  // `core` outlives this object. `head` is the head's address, for people.
  AdmissionDesk(const NodeCore& core, std::string head);
  ~AdmissionDesk();

  // A process that asks to be registered over its connection.
  struct Applicant {
    OwnerId owner = 0;
    bool is_local = false;  // it came over this node's Unix socket
    WorkerId process;       // registered over this connection before; nil: none
  };
  enum class Entry {
    kWaits,  // it asks again after open()
    kGoesOn
  };
  // Null: the connection has closed.
  Result<Entry> ask(const Applicant* applicant);
  // The node is registered at its head. Those that wait ask again.
  void open() { open_ = true; }
  // Nobody is admitted from now on.
  void stop() { stopped_ = true; }
  bool is_open() const { return open_; }

  // Whether a worker of this id may register. NodeCore has to accept it afterwards.
  Status admit_worker(const WorkerId& id) const;

  // ---- drivers
  enum class Driver { kJoins, kNeedsJob };
  // `job` is the one that the driver names, or nil. It needs one that the head begins otherwise.
  Result<Driver> admit_driver(OwnerId driver, const JobId& job, bool head_is_there);
  struct Answer {
    JobId join;    // the driver joins with this job; nil: it does not
    JobId finish;  // to be finished at the head; nil: none
    std::optional<Error> refusal = {};
  };
  // The head has begun a job for the driver, or has refused.
  Answer head_answered(OwnerId driver, const Result<proto::AddJobReply>& begun);
  // NodeCore has accepted the driver.
  void driver_joined(OwnerId driver, const proto::JobInfo& job);
  // NodeCore has refused it. Returns the job that the head is to finish, because it was begun for
  // this driver; nil: none. One that the driver has named may be another driver's.
  JobId driver_refused(OwnerId driver);
  // A connection has closed. Returns the job that the head is to finish; nil: none.
  JobId left(OwnerId owner);
  // Adds the jobs whose drivers are connected.
  void fill_jobs(proto::RegisterNodeRequest* request) const { driver_jobs_.fill(request); }

 private:
  const NodeCore& core_;
  const std::string head_;
  bool open_ = false, stopped_ = false;
  size_t waiting_ = 0;  // so many came before open()
  DriverJobs driver_jobs_;
  std::map<OwnerId, JobId> begun_;  // jobs of drivers that have not joined yet
};

}  // namespace rt::node
