// The connections of owners and workers to a node, and who of them is admitted: models
// daemons/node_manager/service/{sessions,admission}.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "daemons/node_manager/core/admission_desk.h"
#include "daemons/node_manager/core/node_core.h"
#include "tests/sim/node_head.h"

namespace rt::sim {

class NodeSessions {
 public:
  template <class T>
  using Answer = Channel::Answer<T>;
  struct Session {
    ChannelPtr channel;
    WorkerId worker;
    bool is_driver = false;
    JobId job;
  };
  // Passes an event to the core of the node.
  using Drive = std::function<void(const std::function<void(node::NodeCore&, Now)>&)>;

  // All of them outlive this object.
  NodeSessions(const node::NodeCore& core, NodeHead& head, Drive drive)
      : core_(core), head_(head), drive_(std::move(drive)) {}

  void add(const ChannelPtr& channel) { sessions_[channel->connection()].channel = channel; }
  // Forgets a connection that has closed. Returns nothing if it is not known.
  std::optional<Session> remove(uint64_t connection);
  // The job of a driver that has left is finished at the head.
  void left(node::OwnerId owner) { finish_job(desk_.left(owner)); }
  Channel* channel(node::OwnerId owner) const;
  // The process that registered over the connection; nil: none.
  const WorkerId& process(node::OwnerId owner) const { return sessions_.at(owner).worker; }
  // Null if the worker is not connected.
  Channel* channel_of(const WorkerId& worker) const;
  void tell_drivers(const char* what, const Channel::AtPeer& at_driver) const;

  // ---- processes that ask to be registered
  void register_worker(Channel& from, const WorkerId& id, int pid, Answer<proto::Empty> answer);
  void register_driver(Channel& from, int pid, Answer<proto::RegisterWorkerReply> answer);
  // The node has joined its cluster: those that wait are admitted.
  void open();
  bool is_open() const { return desk_.is_open(); }
  void fill_jobs(proto::RegisterNodeRequest* request) const { desk_.fill_jobs(request); }

 private:
  // Calls `admitted` at once, or when the node has joined its cluster, or answers with a refusal.
  template <class T>
  void ask(Channel& from, const Answer<T>& answer, std::function<void(Session&)> admitted);
  void driver_joined(uint64_t connection, JobId job, int pid,
                     const Answer<proto::RegisterWorkerReply>& answer);
  void finish_job(const JobId& job);  // at the head; nil: none

  const node::NodeCore& core_;
  NodeHead& head_;
  const Drive drive_;
  std::map<uint64_t, Session> sessions_;  // by connection, whose number is the core's owner id
  node::AdmissionDesk desk_{core_, "the head's address"};
  std::vector<std::function<void()>> waiting_;  // to be admitted, until the desk opens
};

}  // namespace rt::sim
