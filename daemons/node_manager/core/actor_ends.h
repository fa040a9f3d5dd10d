// The actors whose processes end, and those whose processes have ended. An incarnation of an actor
// is started at most once, although the head may ask for it again before it has heard of its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"

namespace rt::node {

class ActorEnds {
 public:
  // The last ends are remembered, up to so many, and up to so many bytes: the error of a
  // constructor may be large. The newest is always remembered.
  static constexpr size_t kMaxEnds = 1000, kMaxBytes = 16 << 20;
  struct End {
    int64_t epoch = 0;
    proto::ExitInfo info;
  };

  // ---- processes that end (kDying), until NodeCore::finish() reports them
  void begin(const WorkerId& worker, const ActorId& actor) { dying_[worker] = actor; }
  // Returns the actor of the process, if it is the end of one that is still to be reported.
  std::optional<ActorId> of(const WorkerId& worker) const;
  void forget(const WorkerId& worker);

  // ---- ends that were reported
  void record(const ActorId& actor, int64_t epoch, const proto::ExitInfo& info);
  // Returns the last end of the actor here, or null.
  const End* find(const ActorId& actor) const;

 private:
  std::map<WorkerId, ActorId> dying_;
  std::map<ActorId, End> ends_;
  std::deque<ActorId> order_;  // keys of ends_, oldest first
  size_t bytes_ = 0;           // The sum of the sizes of ExitInfo::creation_error in ends_.
};

}  // namespace rt::node
