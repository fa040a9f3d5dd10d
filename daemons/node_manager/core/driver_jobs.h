// The jobs of the drivers of this node. The head begins a job when its driver registers, and is to
// finish it when the driver's connection ends, which may be before the head has answered.
#pragma once

#include <map>
#include <set>

#include "common/base/ids.h"
#include "common/proto/head.pb.h"
#include "daemons/node_manager/core/types.h"

namespace rt::node {

class DriverJobs {
 public:
  // The head is asked to begin the job of the driver that registers over this connection.
  void ask(OwnerId driver);
  bool asks(OwnerId driver) const { return asking_.contains(driver); }
  // The head has begun `job`, or has refused (nil). Returns the job that the head is to finish
  // because its driver has left meanwhile; nil: none.
  JobId answered(OwnerId driver, const JobId& job);
  // The driver has become a process of this node.
  void joined(OwnerId driver, const proto::JobInfo& job);
  // A connection has closed. Returns the job that the head is to finish; nil: none.
  JobId left(OwnerId driver);

  // Adds the jobs whose drivers are connected. The head finishes the others of this node.
  void fill(proto::RegisterNodeRequest* request) const;

 private:
  std::set<OwnerId> asking_;
  std::map<OwnerId, proto::JobInfo> jobs_;
};

}  // namespace rt::node
