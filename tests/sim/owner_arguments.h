// Where the tasks of a driver run because of their arguments: models worker/service/arguments.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tests/sim/world.h"
#include "worker/core/locality.h"
#include "worker/core/submitter.h"

namespace rt::sim {

class OwnerArguments {
 public:
  // `here`: the node of the driver, whose store has this many bytes; 0: it has none.
  OwnerArguments(World& world, const NodeId& here, int64_t store_bytes)
      : world_(world), here_(here), store_bytes_(store_bytes) {}

  // Lets the task run where its arguments are, if it should.
  void prefer(worker::Task& task, const TaskPlan& plan, worker::Submitter& submitter);
  // The arguments found no room where the lease is. False if the task has to fail because of that.
  bool move(worker::Task* task, const TaskPlan& plan, uint64_t lease_key,
            worker::Submitter& submitter);

 private:
  std::vector<const worker::ObjectEntry*> entries(const TaskPlan& plan);

  World& world_;
  const NodeId here_;
  const int64_t store_bytes_;
  std::map<ObjectId, std::unique_ptr<worker::ObjectEntry>> known_;
};

}  // namespace rt::sim
