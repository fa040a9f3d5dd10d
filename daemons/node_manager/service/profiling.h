// The services that profile: this process itself, and with py-spy the workers and drivers of the
// node. Threads: the loop's.
#pragma once

#include <unistd.h>

#include "common/rpc/connection.h"
#include "daemons/node_manager/service/options.h"
#include "daemons/node_manager/service/py_spy_rpc.h"
#include "observability/profile_service/profile_service.h"

namespace rt::node {

class Profiling {
 public:
  // `core` and `reaper` outlive this object, which outlives the connections it serves.
  Profiling(net::Loop& loop, const NodeManagerOptions& options, const NodeCore& core,
            Reaper& reaper)
      : own_(loop),
        py_spy_(core, loop, reaper,
                PySpy::Options{options.session_dir, options.programs.python, ::geteuid() == 0}) {}

  void serve(rpc::Connection& connection) {
    connection.add_service(&own_);
    connection.add_service(&py_spy_);
  }

 private:
  profile::ProfileServer own_;
  PySpyRpc py_spy_;
};

}  // namespace rt::node
