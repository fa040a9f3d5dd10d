// Keeps what the entrypoints of submitted jobs hold of the node's resources. NodeCore says when.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "daemons/node_manager/core/bundles.h"
#include "daemons/node_manager/core/node_identity.h"

namespace rt::node {

class JobHolds {
 public:
  struct Hold {
    ResourceSet resources;
    GpuShare gpus;
  };
  // Both outlive the holds.
  JobHolds(const NodeIdentity& me, Rooms& rooms);
  ~JobHolds();

  // Takes `resources` until release(). Returns the names of its GPUs, kResourceExhausted if the
  // resources are not free, and kAlreadyExists if the entrypoint holds resources already.
  Result<std::vector<std::string>> hold(const std::string& submission_id,
                                        const ResourceSet& resources);
  // Returns false if it holds nothing.
  bool release(const std::string& submission_id);
  // Maps submission ids to what their jobs hold.
  const std::map<std::string, Hold>& all() const { return holds_; }

 private:
  const NodeIdentity& me_;
  Rooms& rooms_;
  std::map<std::string, Hold> holds_;
};

}  // namespace rt::node
