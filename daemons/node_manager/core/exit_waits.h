// The questions how a worker has ended (GetWorkerExit) that have no answer yet. They come from
// processes whose connection to the worker broke: either it ends, and this node will see that in a
// moment, or only the connection broke and the worker goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/proto/node_manager.pb.h"

namespace rt::node {

class NodeCore;

class ExitWaits {
 public:
  using Answer = std::function<void(const proto::WorkerExitReply&)>;
  // Whether the operating system shows that this process has begun to end.
  using IsEnding = std::function<bool(int pid)>;

  // A process that ends has ended, or is seen to be ending, after kStillAliveUs. A worker that is
  // ending is waited for until kGiveUpUs.
  static constexpr int64_t kStillAliveUs = 200'000, kGiveUpUs = 2'000'000;

  // `core` outlives this object. `node_ip` names the node to people.
  ExitWaits(const NodeCore& core, std::string node_ip, IsEnding is_ending);

  // `answer` is called once, possibly before this returns; not after the end of this object. It
  // says nothing of a worker that is not known here, or whose end was not seen.
  void ask(const WorkerId& worker, Answer answer, Now now);
  // The worker's end is known to the core.
  void ended(const WorkerId& worker);
  void tick(Now now);
  // The steady time at which tick() has something to do, or -1.
  int64_t next_tick_us() const;

 private:
  // When a question is looked at next, its number, and the worker.
  using Due = std::tuple<int64_t, uint64_t, WorkerId>;
  struct Question {
    Answer answer;
    int64_t asked_us = 0, due_us = 0;
  };
  // Answers the question if its worker goes on, or if it has waited for long enough. Otherwise it
  // gets more time.
  void look_at(const WorkerId& worker, uint64_t number, Now now);

  const NodeCore& core_;
  const std::string node_ip_;
  const IsEnding is_ending_;
  std::map<WorkerId, std::map<uint64_t, Question>> questions_;  // by number
  std::set<Due> due_;
  uint64_t last_number_ = 0;
};

}  // namespace rt::node
