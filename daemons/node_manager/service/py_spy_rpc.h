// Implements PySpyService: any client that may connect to this node-manager can run py-spy, but
// only on workers and drivers of this node.
#pragma once

#include "common/proto/py_spy.pb.h"
#include "daemons/node_manager/process/py_spy.h"

namespace rt::node {

class NodeManager;

class PySpyRpc final : public proto::PySpyService {
 public:
  PySpyRpc(const NodeManager& node, net::Loop& loop, Reaper& reaper, PySpy::Options options)
      : node_(node), py_spy_(loop, reaper, std::move(options)) {}
  void Run(google::protobuf::RpcController*, const proto::PySpyRequest*, proto::PySpyReply*,
           google::protobuf::Closure*) override;

 private:
  const NodeManager& node_;
  PySpy py_spy_;
};

}  // namespace rt::node
