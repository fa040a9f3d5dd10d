// The connections that processes have opened to this node-manager: workers and drivers of this
// node, owners on other nodes, clients. A connection is the life of the process that registered
// over it. Threads: the loop's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/base/ids.h"
#include "common/base/shared_counters.h"
#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/rpc/client.h"
#include "daemons/node_manager/core/types.h"

namespace rt::node {

struct Session {
  OwnerId id = 0;
  std::shared_ptr<rpc::Connection> connection;
  WorkerId worker;  // the process that registered over this connection; nil: none
  bool is_driver = false;
  JobId job;                    // set for a driver
  std::string socket_path;      // where the process listens; unlinked when the connection closes
  int event_counter = -1;       // its number among the counters of task events; -1: none
  proto::WaitingTasks waiting;  // tasks and calls of the process, as it said last
  int64_t events_received = 0;  // task events it has sent; its counter says how many it recorded
};

class Sessions {
 public:
  // Sockets of processes lie beside `own_socket`, that of the node-manager, like `store_socket`.
  Sessions(std::string own_socket, std::string store_socket);
  // A connection may outlive its session inside a callback of its own. Its closed handler is
  // removed.
  ~Sessions();

  // ---- connections
  Session& add(const std::shared_ptr<rpc::Connection>& connection);
  // Forgets a connection that has closed, and unlinks the socket of its process. Returns nothing if
  // it is not known.
  std::optional<Session> remove(const rpc::Connection* connection);
  // These return null for what is not (or no longer) connected. A session stays where it is until
  // it is removed.
  Session* find(const rpc::Connection& connection);
  rpc::Connection* owner(OwnerId id) const;
  rpc::Connection* process(const WorkerId& id) const;
  void close_all(const Error& why);

  // ---- registered processes of this node
  // From now on process(worker) is this connection, which has no name yet. No id here is nil.
  void name(Session& session, const WorkerId& worker);
  // Takes it back: the core refuses the process. One that registered before under this id goes on.
  void unname(Session& session);
  // The core has accepted the process. `reply` gets the place where it counts the task events that
  // it records, which can be read after it was killed.
  void joined(Session& session, const std::string& socket_path, proto::RegisterWorkerReply* reply);
  // Returns how many task events a process that is gone had recorded and not sent.
  int64_t take_lost_events(const Session& gone);
  void tell_processes(const proto::HeadEvent& event) const;
  // Prints a line at the drivers of this node. `last_words` means that this process is about to
  // end and that the errors which drivers raise because of it should give `text` as the reason.
  void tell_drivers(const std::string& text, bool last_words) const;

  // ---- figures
  size_t size() const { return sessions_.size(); }
  size_t queued_bytes() const;
  // Adds what the processes said last of their tasks that wait.
  void fill_waiting(proto::ResourceReport* report) const;

 private:
  const std::string own_socket_, store_socket_;
  // Null if the memory for it could not be made.
  std::unique_ptr<SharedCounters> event_counters_;
  std::unordered_map<const rpc::Connection*, Session> sessions_;
  std::unordered_map<OwnerId, rpc::Connection*> owners_;
  std::unordered_map<WorkerId, rpc::Connection*> processes_;
  OwnerId next_owner_ = 1;
};

}  // namespace rt::node
