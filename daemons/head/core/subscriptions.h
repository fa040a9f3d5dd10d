// Which connection wants which events. A subscription lives as long as its connection.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "daemons/head/core/sink.h"

namespace rt::head {

class Subscriptions {
 public:
  // `sink` must outlive this object.
  explicit Subscriptions(HeadSink& sink) : sink_(sink) {}

  // Adds to what the connection receives. Fails with kResourceExhausted beyond `max_actors` per
  // connection and with kInvalid for ids of a wrong size; a failed call adds nothing.
  Status add(ConnId conn, const proto::SubscribeRequest& request, int64_t max_actors);
  void remove(ConnId conn);
  // Drops the actor's subscriptions: no event about it follows.
  void actor_ended(const ActorId& id);

  void publish_actor(const ActorId& id, const proto::ActorInfo& info) const;
  // Sends to subscribers of node changes. Node-managers get theirs from Cluster.
  void publish_nodes(const proto::HeadEvent& event) const;
  // Sends lines and notices to subscribers that follow their job, and notices without a job to
  // subscribers of errors.
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
  // Ordered, so that pushes leave in the same order in every run.
  std::map<ConnId, Subscriber> subscribers_;
  std::unordered_map<ActorId, std::set<ConnId>> by_actor_;
  std::unordered_map<JobId, std::set<ConnId>> by_job_;
};

}  // namespace rt::head
