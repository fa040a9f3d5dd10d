#include "daemons/node_manager/service/news_delivery.h"

namespace rt::node {

void NewsDelivery::nodes_changed(const Membership::NodeList& nodes) {
  node_.driver.drive([&](NodeCore& core, Now now) {
    for (const proto::Node& node : nodes) core.node_changed(node);
    core.nodes_settled(now);
  });
}

void NewsDelivery::head_lost() {
  node_.driver.drive([](NodeCore& core, Now now) { core.head_lost(now); });
}

void NewsDelivery::job_finished(JobId job) {
  node_.driver.drive([&](NodeCore& core, Now now) { core.job_finished(job, now); });
}

void NewsDelivery::job_over(JobId job) {
  node_.driver.drive([&](NodeCore& core, Now now) { core.job_over(job, now); });
}

void NewsDelivery::tell_processes(const proto::HeadEvent& news) {
  node_.sessions.tell_processes(news);
}

void NewsDelivery::tell_drivers(const std::string& line) {
  node_.sessions.tell_drivers(line, false);
}

void NewsDelivery::owners_gone(const proto::OwnersGone& gone) {
  if (node_.store) node_.store->owners_gone(gone);
}

}  // namespace rt::node
