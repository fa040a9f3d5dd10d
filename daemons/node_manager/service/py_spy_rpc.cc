#include "daemons/node_manager/service/py_spy_rpc.h"

#include <fmt/core.h>

#include <algorithm>

namespace rt::node {
namespace {

constexpr int kMaxDurationS = 3600;

// py-spy may run as root, so a client may only choose among these formats and nothing else on its
// command line that determines what is written.
bool known_format(const std::string& format) {
  return format == "flamegraph" || format == "raw" || format == "speedscope";
}

}  // namespace

void PySpyRpc::Run(google::protobuf::RpcController*, const proto::PySpyRequest* request,
                   proto::PySpyReply* reply, google::protobuf::Closure* done) {
  proto::ProcessesReply known;
  core_.view().workers().fill_processes(&known);
  const auto& processes = known.processes();
  bool ours = std::any_of(processes.begin(), processes.end(), [&](const auto& process) {
    return process.alive() && process.pid() > 0 && process.pid() == request->pid();
  });
  if (!ours) {
    reply->set_outcome(proto::PySpyReply::NO_SUCH_PROCESS);
    reply->set_message(
        fmt::format("no worker or driver of this node has the process id {}", request->pid()));
    return done->Run();
  }
  if (request->duration_s() < 0 || request->duration_s() > kMaxDurationS ||
      (request->duration_s() > 0 && !known_format(request->format()))) {
    reply->set_outcome(proto::PySpyReply::FAILED);
    reply->set_message(fmt::format(
        "py-spy records up to {} seconds as flamegraph, raw or speedscope", kMaxDurationS));
    return done->Run();
  }
  py_spy_.run(*request, [reply, done](const proto::PySpyReply& answer) {
    *reply = answer;
    done->Run();
  });
}

}  // namespace rt::node
