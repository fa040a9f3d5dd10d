#include "daemons/node_manager/service/requests.h"

#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "daemons/node_manager/process/process.h"

namespace rt::node {

Requests::Requests(net::Loop& loop, CoreDriver& driver, Sessions& sessions, WorkerStarter& starter,
                   std::string node_ip)
    : driver_(driver),
      sessions_(sessions),
      starter_(starter),
      exit_waits_(driver.core(), std::move(node_ip), process_is_ending),
      exit_alarm_(loop, [this] {
        exit_waits_.tick(system_now());
        exit_alarm_.ring_by(exit_waits_.next_tick_us());
      }) {}

// ---- from owners and processes of this node

void Requests::set_demand(const rpc::Connection& from, const proto::LeaseDemand& demand) {
  const Session* session = sessions_.find(from);
  if (!session || stopped_) return;
  proto::LeaseDemand mine = demand;
  mine.mutable_job()->set_python_executable(
      starter_.canonical_python(demand.job().python_executable()));
  driver_.drive(
      [&](NodeCore& core, Now now) { core.set_demand(session->id, session->worker, mine, now); });
}

void Requests::return_lease(const rpc::Connection& from, const proto::LeaseReturn& request) {
  const Session* session = sessions_.find(from);
  if (!session || stopped_) return;
  driver_.drive([&](NodeCore& core, Now now) { core.return_lease(session->id, request, now); });
}

void Requests::setup_failed(const rpc::Connection& from, const proto::WorkerSetupFailure& failure) {
  // Only processes of this user can open the Unix socket.
  if (stopped_ || !from.peer().is_unix || !WorkerId::is_valid(failure.worker_id())) return;
  RT_WARN("worker process {} could not make its runtime environment: {}", failure.pid(),
          failure.message());
  driver_.drive([&](NodeCore& core, Now now) {
    core.worker_setup_failed(WorkerId::from_binary(failure.worker_id()), failure.message(), now);
  });
}

void Requests::await_exit(const WorkerId& worker, proto::WorkerExitReply* reply, Closure* done) {
  auto answer = [reply, done](const proto::WorkerExitReply& known) {
    *reply = known;
    done->Run();
  };
  exit_waits_.ask(worker, answer, system_now());
  exit_alarm_.ring_by(exit_waits_.next_tick_us());
}

// ---- from the head

void Requests::create_actor(const rpc::Connection& from, const proto::CreateActorRequest& request,
                            proto::CreateActorReply* reply, Closure* done) {
  proto::CreateActorRequest mine = request;
  proto::JobConfig& job = *mine.mutable_spec()->mutable_job_config();
  job.set_python_executable(starter_.canonical_python(job.python_executable()));
  head_calls_.hold(
      request, [from = from.weak_from_this(), reply, done](const proto::CreateActorReply& answer) {
        auto connection = from.lock();
        const bool heard = connection && connection->is_open();
        *reply = answer;
        done->Run();
        return heard;
      });
  driver_.drive([&](NodeCore& core, Now now) { core.create_actor(mine, now); });
}

void Requests::prepare_bundles(const proto::PrepareBundlesRequest& request,
                               proto::PrepareBundlesReply* reply, Closure* done) {
  head_calls_.hold(request, [reply, done](const proto::PrepareBundlesReply& answer) {
    *reply = answer;
    done->Run();
    return true;
  });
  driver_.drive([&](NodeCore& core, Now now) { core.prepare_bundles(request, now); });
}

}  // namespace rt::node
