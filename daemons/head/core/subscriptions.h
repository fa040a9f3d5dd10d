// Who wants which events. A subscription lives as long as its connection.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "daemons/head/core/sink.h"

namespace rt::head {

class Subscriptions {
 public:
  // `sink` outlives this.
  explicit Subscriptions(HeadSink& sink) : sink_(sink) {}

  // kResourceExhausted beyond `max_actors` per connection, kInvalid for ids of a wrong size;
  // nothing is added then.
  Status add(ConnId conn, const proto::SubscribeRequest& request, int64_t max_actors);
  void remove(ConnId conn);
  void actor_ended(const ActorId& id);  // nothing more will be said of it

  void publish_actor(const ActorId& id, const proto::ActorInfo& info) const;
  // To subscribers of node changes. Node-managers get theirs from Cluster.
  void publish_nodes(const proto::HeadEvent& event) const;
  // Lines and notices go to those who follow the job; notices without a job to those who asked for
  // errors.
  void publish_logs(const proto::HeadEvent& event) const;
  void publish_notice(const JobId& job, const std::string& severity, const std::string& text) const;
  void check_invariants() const;

 private:
  struct Subscriber {
    bool nodes = false, errors = false;
    std::set<ActorId> actors;
    std::set<JobId> jobs;
  };
  HeadSink& sink_;
  std::map<ConnId, Subscriber> subscribers_;  // ordered: pushes are the same in every run
  std::unordered_map<ActorId, std::set<ConnId>> by_actor_;
  std::unordered_map<JobId, std::set<ConnId>> by_job_;
};

}  // namespace rt::head
