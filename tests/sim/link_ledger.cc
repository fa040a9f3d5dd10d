#include "tests/sim/link_ledger.h"

#include <fmt/core.h>

#include "tests/sim/ledger.h"

namespace rt::sim {

uint64_t LinkLedger::asked(const NodeId& node, const char* what) {
  calls_[++last_call_] = fmt::format("'{}' of node {}", what, node.hex().substr(0, 8));
  return last_call_;
}

void LinkLedger::end_heard(const proto::DeadWorkers& report) {
  for (const std::string& id : report.worker_ids()) unheard_.erase(WorkerId::from_binary(id));
}

void LinkLedger::node_ended(const NodeId& node) {
  std::erase_if(unheard_, [&node](const auto& process) { return process.second == node; });
}

void LinkLedger::check_goes_on(const NodeId& node, const proto::HeadEvent& news) {
  for (const proto::Node& told : news.nodes()) {
    if (told.node_id() == node.view() && !told.alive())
      violation(fmt::format("node {} goes on although its head has told it that it is dead",
                            node.hex().substr(0, 8)));
  }
}

std::string LinkLedger::untold() const {
  if (!calls_.empty())
    return fmt::format("the head waits for the answer to {} over a connection that holds",
                       calls_.begin()->second);
  if (!unheard_.empty())
    return fmt::format("the head has not heard that process {} of node {} has ended",
                       unheard_.begin()->first.hex().substr(0, 8),
                       unheard_.begin()->second.hex().substr(0, 8));
  return "";
}

}  // namespace rt::sim
