#include "daemons/node_manager/core/head_calls.h"

namespace rt::node {
namespace {

// Answers the calls that wait for `key`. Returns whether one of them is heard.
template <class Calls, class Key, class Reply>
bool answer_all(Calls& calls, const Key& key, const Reply& reply) {
  auto waiting = calls.extract(key);
  if (waiting.empty()) return false;
  bool heard = false;
  for (const auto& answer : waiting.mapped()) heard |= answer(reply);
  return heard;
}

}  // namespace

void HeadCalls::hold(const proto::CreateActorRequest& request,
                     Answer<proto::CreateActorReply> answer) {
  actors_[{ActorId::from_binary(request.spec().actor_id()), request.epoch()}].push_back(
      std::move(answer));
}

void HeadCalls::hold(const proto::PrepareBundlesRequest& request,
                     Answer<proto::PrepareBundlesReply> answer) {
  bundles_[{GroupId::from_binary(request.group_id()), request.epoch()}].push_back(
      std::move(answer));
}

HeadCalls::Unheard HeadCalls::actor_created(const ActorId& id, int64_t epoch,
                                            const proto::CreateActorReply& reply) {
  Unheard unheard;
  if (answer_all(actors_, std::pair(id, epoch), reply)) return unheard;
  if (reply.ok()) {
    proto::ActorStarted& started = unheard.started.emplace();
    started.set_actor_id(id.binary());
    started.set_epoch(epoch);
    *started.mutable_address() = reply.address();
    started.set_pid(reply.pid());
  } else {
    proto::ActorDied& died = (reply.no_resources() ? unheard.refused : unheard.died).emplace();
    died.set_actor_id(id.binary());
    died.set_epoch(epoch);
    *died.mutable_death() = reply.failure();
  }
  return unheard;
}

void HeadCalls::bundles_prepared(const GroupId& group, int64_t epoch,
                                 const proto::PrepareBundlesReply& reply) {
  answer_all(bundles_, std::pair(group, epoch), reply);
}

}  // namespace rt::node
