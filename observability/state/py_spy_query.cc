#include "observability/state/py_spy_query.h"

#include <fmt/core.h>

#include <optional>

#include "common/base/ids.h"
#include "observability/state/sources.h"

namespace rt::state {

Result<proto::PySpyReply> run_py_spy(const Cluster& cluster, const std::string& node,
                                     const proto::PySpyRequest& request, int64_t timeout_us) {
  RT_ASSIGN(auto sources,
            Sources::connect(cluster.head_address, cluster.token, timeout_us, cluster.connect_us));
  proto::GetNodesRequest alive;
  alive.set_alive_only(true);
  RT_ASSIGN(auto nodes, sources->ask_head(&proto::HeadService::Stub::GetNodes, alive));
  std::vector<Sources::Place> places;  // Several nodes may share an address.
  for (const auto& one : nodes.nodes()) {
    std::string id = to_hex(one.node_id());
    if (id == node || one.ip() == node) places.push_back(Sources::place_of(one));
  }
  if (places.empty())
    return make_error(Code::kNotFound, fmt::format("there is no living node {}", node));
  std::optional<proto::PySpyReply> found;
  sources->ask_each(places, &proto::PySpyService::Stub::Run, request,
                    {.at_once = places.size(), .last = true},
                    [&](size_t, const proto::PySpyReply& reply) {
                      if (reply.outcome() != proto::PySpyReply::NO_SUCH_PROCESS) found = reply;
                    });
  if (found) return *found;
  if (!sources->missing().empty()) return make_error(Code::kUnavailable, sources->missing()[0]);
  return make_error(
      Code::kNotFound,
      fmt::format("no worker or driver of node {} has the process id {}", node, request.pid()));
}

}  // namespace rt::state
