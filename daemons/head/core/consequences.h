// Decides what a change of one part of the head means for the others: a node that is lost takes its
// jobs, actors and bundles with it, a job that ends takes its actors, and what they leave behind is
// released. The end of an event is here, too, because it repeats until nothing follows any more.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "daemons/head/core/head_parts.h"

namespace rt::head {

class Consequences {
 public:
  // `head` must outlive the consequences.
  explicit Consequences(HeadParts& head);

  // Places what can be placed, writes what has changed and publishes the news, once an event.
  void end_event(Now now);
  void end_job(const JobId& id, Now now);
  void node_lost(const NodeId& id, proto::NodeDeath reason, const std::string& why, Now now);
  // Tells all nodes that jobs or processes have ended.
  void tell_nodes(const proto::HeadEvent& news, Now now);
  // All of it that a node that comes back may not have heard.
  proto::HeadEvent missed() const;

  // Begins the time after an earlier head has left its state: until its nodes have come back, or
  // are declared dead, nobody says that what ran on them is lost.
  void begin_settling(Now now);
  bool settling() const { return settling_; }
  void settle_if_complete(Now now);

  // The latest losses of nodes, for people; the oldest first.
  const std::deque<std::string>& recent_failures() const { return recent_failures_; }

 private:
  // Releases what the job keeps. The job must have ended, and no actor of it may be left.
  void job_over(const JobId& id);
  // Tells actors what has happened to placement groups, and the other way round. Returns whether
  // there was anything to tell.
  bool exchange_news(Now now);

  HeadParts& head_;
  // Set after a restart of the head while recorded nodes have yet to come back.
  bool settling_ = false;
  // Jobs to announce to nodes at the end of the current event.
  proto::HeadEvent ended_now_;
  // The latest of what tell_nodes() has told, for as long as a node may be away without being
  // declared dead. Each entry has what was told within about a second from its steady time on.
  std::deque<std::pair<int64_t, proto::HeadEvent>> told_;
  std::deque<std::string> recent_failures_;
};

}  // namespace rt::head
