// The record of answers and news that nodes and their head owe each other, whatever becomes of
// their connections.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/base/ids.h"
#include "common/proto/head.pb.h"

namespace rt::sim {

class LinkLedger {
 public:
  // ---- calls of a head, each of which is answered unless its connection breaks
  // Returns the number of the call.
  uint64_t asked(const NodeId& node, const char* what);
  void answered(uint64_t call) { calls_.erase(call); }
  void head_ended() { calls_.clear(); }

  // ---- ends of processes, of which a head has to hear
  void process_ended(const NodeId& node, const WorkerId& process) { unheard_[process] = node; }
  void end_heard(const proto::DeadWorkers& report);
  void node_ended(const NodeId& node);

  // The node has dealt with this news and goes on: it must not be dead for its head.
  static void check_goes_on(const NodeId& node, const proto::HeadEvent& news);

  // Says what has not been told; empty if all has. Once nothing happens any more.
  std::string untold() const;

 private:
  std::map<uint64_t, std::string> calls_;  // that wait for their answer
  uint64_t last_call_ = 0;
  std::map<WorkerId, NodeId> unheard_;  // the nodes of the processes
};

}  // namespace rt::sim
