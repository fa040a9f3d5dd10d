// Knows which connection wants which events. A subscription lives as long as its connection.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "daemons/head/core/head_sink.h"

namespace rt::head {

class Subscriptions {
 public:
  // `sink` must outlive this object.
  explicit Subscriptions(HeadSink& sink);
  ~Subscriptions();

  // Adds to what the connection receives. Fails with kResourceExhausted beyond `max_followed`
  // actors and groups per connection and with kInvalid for ids of a wrong size; a failed call adds
  // nothing.
  Status add(ConnId conn, const proto::SubscribeRequest& request, int64_t max_followed);
  // Does nothing for a connection that has no subscriptions.
  void remove(ConnId conn);
  // Drop all subscriptions to the actor or placement group. The last state must have been
  // published.
  void actor_ended(const ActorId& id);
  void group_ended(const GroupId& id);

  void publish_actor(const ActorId& id, const proto::ActorInfo& info) const;
  void publish_group(const GroupId& id, const proto::GroupInfo& info) const;
  // Sends to subscribers of node changes. Node-managers get theirs from Cluster.
  void publish_nodes(const proto::HeadEvent& event) const;
  // These two send lines and notices to subscribers that follow their job, and notices without a
  // job to subscribers of errors.
  void publish_logs(const proto::HeadEvent& event) const;
  void publish_notice(const JobId& job, const std::string& severity, const std::string& text) const;
  void check_invariants() const;

 private:
  struct Subscriber {
    bool nodes = false, errors = false;
    std::set<ActorId> actors;
    std::set<GroupId> groups;
    std::set<JobId> jobs;
  };
  HeadSink& sink_;
  // Ordered, so that pushes leave in the same order in every run.
  std::map<ConnId, Subscriber> subscribers_;
  std::unordered_map<ActorId, std::set<ConnId>> by_actor_;
  std::unordered_map<GroupId, std::set<ConnId>> by_group_;
  std::unordered_map<JobId, std::set<ConnId>> by_job_;
};

}  // namespace rt::head
