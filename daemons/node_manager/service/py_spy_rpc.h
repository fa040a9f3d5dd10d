// Implements PySpyService: any client that may connect to this node-manager can run py-spy, but
// only on workers and drivers of this node.
#pragma once

#include "common/proto/py_spy.pb.h"
#include "daemons/node_manager/core/node_core.h"
#include "daemons/node_manager/process/py_spy.h"

namespace rt::node {

class PySpyRpc final : public proto::PySpyService {
 public:
  // `core` outlives this object.
  PySpyRpc(const NodeCore& core, net::Loop& loop, Reaper& reaper, PySpy::Options options)
      : core_(core), py_spy_(loop, reaper, std::move(options)) {}
  void Run(google::protobuf::RpcController*, const proto::PySpyRequest*, proto::PySpyReply*,
           google::protobuf::Closure*) override;

 private:
  const NodeCore& core_;
  PySpy py_spy_;
};

}  // namespace rt::node
