// The decisions of ClusterNews, for the service, a test or the simulator to carry out. An
// implementation must not call back into the core before it returns.
#pragma once

#include <string>

#include "common/base/ids.h"
#include "common/proto/head.pb.h"
#include "common/proto/object_store.pb.h"

namespace rt::node {

class NewsSink {
 public:
  virtual ~NewsSink() = default;

  // The head has declared this node dead, for this reason: it must end.
  virtual void declared_dead(const std::string& why) = 0;

  // ---- to NodeCore
  virtual void nodes_changed(const google::protobuf::RepeatedPtrField<proto::Node>& nodes) = 0;
  virtual void head_lost() = 0;
  virtual void job_finished(JobId job) = 0;
  virtual void job_over(JobId job) = 0;

  // ---- to others on this node
  // To each worker and driver.
  virtual void tell_processes(const proto::HeadEvent& news) = 0;
  // A line for each driver to print.
  virtual void tell_drivers(const std::string& line) = 0;
  // To the object store, if the node has one: it frees what they owned.
  virtual void owners_gone(const proto::OwnersGone& gone) = 0;
};

}  // namespace rt::node
