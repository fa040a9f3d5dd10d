// Decides who on this node hears of what has happened in the cluster: nodes that changed, jobs that
// ended, workers that died elsewhere, and a head that is away or back.
#pragma once

#include <string>

#include "common/base/ids.h"
#include "common/config/settings.h"
#include "common/proto/head.pb.h"
#include "daemons/node_manager/core/membership.h"
#include "daemons/node_manager/core/news_sink.h"

namespace rt::node {

class ClusterNews {
 public:
  // `head` is the name of the head's address in texts. Both references must outlive this object.
  ClusterNews(const Settings& settings, std::string head, const NodeId& me, NewsSink& sink);
  ~ClusterNews();

  // ---- from the head
  void event(const proto::HeadEvent& event);
  // A head has accepted the node. `first`: for the first time, when no process is registered.
  void registered(const proto::RegisterNodeReply& reply, bool first);
  // The head is lost for this reason; registered() says when one is there again.
  void lost(const std::string& why);

  // The driver of the job has left this node, or the head has said that it left another one.
  void job_finished(JobId job);

  const Membership& membership() const { return membership_; }

 private:
  // False: the node has to end, so that nothing else matters.
  bool nodes_changed(const Membership::NodeList& nodes, bool tell_processes);
  void job_over(JobId job);

  const Settings& settings_;
  const std::string head_;
  NewsSink& sink_;
  Membership membership_;
  bool is_lost_ = false;
};

}  // namespace rt::node
