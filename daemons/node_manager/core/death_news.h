// Decides when the head, the processes of this node, and its store, which frees what they owned,
// are told that workers have died. Deaths come in bursts, such as at the end of a job, and are told
// in one message.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/proto/head.pb.h"
#include "common/proto/object_store.pb.h"

namespace rt::node {

class DeathNews {
 public:
  using WorkerIds = google::protobuf::RepeatedPtrField<std::string>;
  // The same news for each of those that hear it.
  struct Told {
    proto::DeadWorkers head;  // only of workers of this node
    proto::HeadEvent processes;
    proto::OwnersGone store;
  };

  // A worker of this node has died.
  void died(const WorkerId& id, Now now);
  // Returns what is to be told now, if there is anything.
  std::optional<Told> tick(Now now);
  // The steady time at which tick() has something to do, or -1.
  int64_t next_tick_us() const { return due_us_; }
  // Deaths from now on are told only together with earlier ones: that the node ends says it.
  void stop() { stopped_ = true; }

  // The head has said that these workers died elsewhere.
  static Told heard(const WorkerIds& dead);

 private:
  WorkerIds dead_;  // since the last news
  int64_t due_us_ = -1;
  bool stopped_ = false;
};

}  // namespace rt::node
