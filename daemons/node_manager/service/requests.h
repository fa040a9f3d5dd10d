// The requests of owners, workers and the head that are events for the core: finds out from whom
// they come, passes them on, and keeps the calls that the core answers later. Threads: the loop's.
#pragma once

#include <string>

#include "common/net/alarm.h"
#include "common/proto/node_manager.pb.h"
#include "common/rpc/connection.h"
#include "daemons/node_manager/core/exit_waits.h"
#include "daemons/node_manager/core/head_calls.h"
#include "daemons/node_manager/process/worker_starter.h"
#include "daemons/node_manager/service/core_driver.h"
#include "daemons/node_manager/service/sessions.h"

namespace rt::node {

class Requests {
 public:
  using Closure = google::protobuf::Closure;
  // `driver` and `starter` outlive the requests; `sessions` is used while the loop runs. `node_ip`
  // names the node to people.
  Requests(net::Loop& loop, CoreDriver& driver, Sessions& sessions, WorkerStarter& starter,
           std::string node_ip);
  // Requests that arrive from now on are ignored.
  void stop() { stopped_ = true; }

  // ---- from owners and processes of this node
  void set_demand(const rpc::Connection& from, const proto::LeaseDemand& demand);
  void return_lease(const rpc::Connection& from, const proto::LeaseReturn& request);
  // Passes on what a registered process says of itself: `event(core, its id, now)`.
  template <class F>
  void said_by(const rpc::Connection& from, F event) {
    const Session* session = stopped_ ? nullptr : sessions_.find(from);
    if (!session || session->worker.is_nil()) return;
    driver_.drive([&](NodeCore& core, Now now) { event(core, session->worker, now); });
  }
  // The sender has not registered yet.
  void setup_failed(const rpc::Connection& from, const proto::WorkerSetupFailure& failure);
  // This and what the head asks for is answered by `done`, possibly later.
  void await_exit(const WorkerId& worker, proto::WorkerExitReply* reply, Closure* done);

  // ---- from the head
  void create_actor(const rpc::Connection& from, const proto::CreateActorRequest& request,
                    proto::CreateActorReply* reply, Closure* done);
  void prepare_bundles(const proto::PrepareBundlesRequest& request,
                       proto::PrepareBundlesReply* reply, Closure* done);

  // ---- answers of the core
  HeadCalls& head_calls() { return head_calls_; }
  ExitWaits& exit_waits() { return exit_waits_; }

 private:
  CoreDriver& driver_;
  Sessions& sessions_;
  WorkerStarter& starter_;
  HeadCalls head_calls_;
  ExitWaits exit_waits_;
  net::Alarm exit_alarm_;
  bool stopped_ = false;
};

}  // namespace rt::node
