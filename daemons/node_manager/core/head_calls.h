// The calls of the head that NodeCore answers later: CreateActor and PrepareBundles. A head that
// has restarted repeats them, so that several may wait for the same answer; all of them get it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"

namespace rt::node {

class HeadCalls {
 public:
  // Answers one call; it is called once, or never if this object ends before. Returns false if the
  // connection of the call has closed, so that nobody hears it.
  template <class Reply>
  using Answer = std::function<bool(const Reply&)>;

  // To be called before the request reaches the core, which may answer at once.
  void hold(const proto::CreateActorRequest& request, Answer<proto::CreateActorReply> answer);
  void hold(const proto::PrepareBundlesRequest& request, Answer<proto::PrepareBundlesReply> answer);

  // An outcome of which no head has heard: it is for the head that this node connects to next. (For
  // a living actor the registration says it, too.)
  struct Unheard {
    std::optional<proto::ActorStarted> started;
    std::optional<proto::ActorDied> died;
    // The start has left nothing here and may be asked for again under the same epoch, as the head
    // does that hears of no start here when this node registers. So this is only for a head that
    // was told of the start by the last registration (HeadQueue::Until::kNextRegistration): a later
    // one would take it for the answer to its own request.
    std::optional<proto::ActorDied> refused;
  };
  // NodeSink::actor_created().
  Unheard actor_created(const ActorId& id, int64_t epoch, const proto::CreateActorReply& reply);
  // NodeSink::bundles_prepared(). An answer that nobody hears is dropped: the head learns from the
  // next registration which bundles the node holds.
  void bundles_prepared(const GroupId& group, int64_t epoch,
                        const proto::PrepareBundlesReply& reply);

 private:
  template <class Id, class Reply>
  using Calls = std::map<std::pair<Id, int64_t>, std::vector<Answer<Reply>>>;  // by id and epoch

  Calls<ActorId, proto::CreateActorReply> actors_;
  Calls<GroupId, proto::PrepareBundlesReply> bundles_;
};

}  // namespace rt::node
