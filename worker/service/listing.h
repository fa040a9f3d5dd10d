// Lists of what this process refers to and of its tasks, for the state API. They are made when
// somebody asks; nothing is kept for them.
#pragma once

#include "common/proto/worker.pb.h"
#include "worker/service/lock.h"

namespace rt::worker {

class ActorClient;
class Execution;
class Groups;
class LeaseClient;
class Objects;
class Submission;
struct Shared;

class Listing {
 public:
  // All of them outlive this object.
  struct Parts {
    const Shared& shared;
    const Objects& objects;
    const Submission& submission;
    const LeaseClient& leases;
    const ActorClient& actors;
    const Groups& groups;
    Execution& execution;
  };
  explicit Listing(const Parts& parts) : parts_(parts) {}

  void objects(proto::ObjectRecords* out) const REQUIRES(worker_mutex);
  void tasks(proto::TaskRecords* out) const REQUIRES(worker_mutex);

 private:
  const Parts parts_;
};

}  // namespace rt::worker
