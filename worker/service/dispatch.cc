// Hands what arrives from other processes to those it is for.
#include <fmt/core.h>

#include "worker/service/impl.h"

namespace rt::worker {

void Worker::Impl::link_opened(const std::shared_ptr<Link>& link) {
  rpc::Connection& connection = *link->connection;
  notices.met_build(connection.peer().build);
  services.offer_to_peer(connection);
  connection.set_flat_handler([this, weak = std::weak_ptr<Link>(link)](uint32_t type, Bytes body) {
    assert_locked();
    if (auto l = weak.lock()) on_flat(l, type, body);
  });
}

void Worker::Impl::on_flat(const std::shared_ptr<Link>& link, uint32_t type, Bytes body) {
  switch (type) {
    case wire::kReplies: submission.results().on_replies(link, body); break;
    case wire::kTasks: execution.queue().on_tasks(link, body); break;
    case wire::kTakeBack: execution.queue().on_take_back(link, body); break;
    case wire::kCancel: execution.on_cancel(link, body); break;
    case wire::kItems: streams.on_items(link, body); break;
    case wire::kItemsTaken: execution.on_items_taken(link, body); break;
    default:
      link->connection->close(
          make_error(Code::kProtocol, fmt::format("unknown flat frame type {}", type)));
  }
}

void Worker::Impl::link_closed(const std::shared_ptr<Link>& link, bool peer_gone) {
  if (peer_gone) objects.refs().borrower_gone(link->peer);
  execution.queue().line().caller_gone(*link);
  if (link->lease_key) leases.submitter().lease_broken(link->lease_key);
  if (!link->actor.is_nil()) actor_client.link_closed(*link);
}

void Worker::Impl::on_head_event(const proto::HeadEvent& event) {
  for (const auto& node : event.nodes()) nodes.update(node);
  for (const auto& dead : event.dead_workers())
    objects.refs().borrower_died(WorkerId::from_binary(dead));
  for (const auto& info : event.actors()) actor_client.update(info);
  for (const auto& info : event.groups()) groups.update(info);
  notices.add(event);
}

}  // namespace rt::worker
