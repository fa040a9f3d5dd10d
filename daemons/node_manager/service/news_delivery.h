// Carries out what ClusterNews decides: passes news of the cluster on to the core, to the processes
// of this node, and to the object store. Threads: the loop's.
#pragma once

#include <functional>
#include <string>

#include "daemons/node_manager/core/cluster_news.h"
#include "daemons/node_manager/service/core_driver.h"
#include "daemons/node_manager/service/options.h"
#include "daemons/node_manager/service/sessions.h"
#include "daemons/node_manager/service/store_link.h"

namespace rt::node {

class NewsDelivery final : private NewsSink {
 public:
  // All of them are used while the loop runs.
  struct Parts {
    CoreDriver& driver;
    Sessions& sessions;
    StoreLink* store;  // null: a node without a store
  };
  // `on_dead` is called when the head has declared this node dead, with the reason.
  NewsDelivery(const NodeManagerOptions& options, Parts node,
               std::function<void(const std::string& why)> on_dead)
      : node_(node),
        on_dead_(std::move(on_dead)),
        news_(options.settings, options.head.to_string(), options.node_id, *this) {}

  // Nothing else than its events is needed of it; what is decided comes back here.
  ClusterNews& news() { return news_; }

 private:
  // NewsSink
  void declared_dead(const std::string& why) override { on_dead_(why); }
  void nodes_changed(const Membership::NodeList& nodes) override;
  void head_lost() override;
  void job_finished(JobId job) override;
  void job_over(JobId job) override;
  void tell_processes(const proto::HeadEvent& news) override;
  void tell_drivers(const std::string& line) override;
  void owners_gone(const proto::OwnersGone& gone) override;

  const Parts node_;
  const std::function<void(const std::string&)> on_dead_;
  ClusterNews news_;
};

}  // namespace rt::node
