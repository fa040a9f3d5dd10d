// Takes what a node hears of the cluster and passes it on to its core, its drivers and its store.
// It models daemons/node_manager/service/news_delivery.
#pragma once

#include <functional>
#include <string>

#include "daemons/node_manager/core/cluster_news.h"
#include "daemons/node_manager/core/node_core.h"
#include "tests/sim/node_sessions.h"

namespace rt::sim {

class NodeNews final : private node::NewsSink {
 public:
  struct Events {
    NodeSessions::Drive drive;
    std::function<void(const proto::OwnersGone&)> on_owners_gone;
    std::function<void()> on_dead;  // The head has declared the node dead.
  };
  // `sessions` must outlive this object.
  NodeNews(World& world, const NodeId& me, const NodeSessions& sessions, Events events)
      : sessions_(sessions),
        events_(std::move(events)),
        news_(world.settings, "the head's address", me, *this) {}

  node::ClusterNews& news() { return news_; }

 private:
  // NewsSink
  void declared_dead(const std::string&) override { events_.on_dead(); }
  void nodes_changed(const google::protobuf::RepeatedPtrField<proto::Node>& nodes) override;
  void head_lost() override;
  void job_finished(JobId job) override;
  void job_over(JobId job) override;
  void tell_processes(const proto::HeadEvent& news) override;
  // Drivers have nobody here who reads.
  void tell_drivers(const std::string&) override {}
  void owners_gone(const proto::OwnersGone& gone) override { events_.on_owners_gone(gone); }

  const NodeSessions& sessions_;
  const Events events_;
  node::ClusterNews news_;
};

}  // namespace rt::sim
