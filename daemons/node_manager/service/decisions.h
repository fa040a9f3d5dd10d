// Carries out what the core decides: messages to owners, starts and ends of processes, reports to
// the head. Threads: the loop's.
#pragma once

#include <memory>
#include <optional>

#include "daemons/node_manager/core/node_sink.h"
#include "daemons/node_manager/process/log_monitor.h"
#include "daemons/node_manager/process/worker_starter.h"
#include "daemons/node_manager/service/core_driver.h"
#include "daemons/node_manager/service/dead_workers.h"
#include "daemons/node_manager/service/head_link.h"
#include "daemons/node_manager/service/load_reports.h"
#include "daemons/node_manager/service/requests.h"
#include "daemons/node_manager/service/sessions.h"

namespace rt::node {

class Decisions final : public NodeSink {
 public:
  // They are used until stop().
  struct Parts {
    CoreDriver& driver;
    Sessions& sessions;
    WorkerStarter& starter;
    LogMonitor& logs;
    HeadLink& head;
    Requests& requests;
    DeadWorkers& dead_workers;
    LoadReports& reports;
  };
  explicit Decisions(net::Loop& loop) : loop_(loop) {}
  ~Decisions() override { *alive_ = false; }

  // To be called before NodeCore::start(): the core decides nothing before.
  void connect(const Parts& parts) { node_.emplace(parts); }
  // Answers of processes are of no interest from now on.
  void stop() { stopped_ = true; }

  // ---- NodeSink
  void grant(OwnerId owner, const proto::LeaseGrant& grant) override;
  void revoke(OwnerId owner, const proto::LeaseRevoke& revoke) override;
  void redirect(OwnerId owner, const proto::LeaseRedirect& redirect) override;
  void notice(OwnerId owner, const proto::LeaseNotice& notice) override;
  void spawn_worker(const WorkerId& id, const WorkerKind& kind) override;
  void kill_worker(const WorkerId& id) override;
  void ask_exit(const WorkerId& id, const proto::KillWorkerRequest& request) override;
  void start_actor(const WorkerId& id, const proto::CreateActorRequest& request) override;
  void actor_created(const ActorId& id, int64_t epoch,
                     const proto::CreateActorReply& reply) override;
  void actor_died(const proto::ActorDied& died) override;
  void bundles_prepared(const GroupId& group, int64_t epoch,
                        const proto::PrepareBundlesReply& reply) override;
  void worker_died(const WorkerId& id, const proto::ExitInfo& info) override;
  void resources_changed() override;

 private:
  net::Loop& loop_;
  std::optional<Parts> node_;
  bool stopped_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
