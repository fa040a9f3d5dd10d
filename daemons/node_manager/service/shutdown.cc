#include "daemons/node_manager/service/shutdown.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"

namespace rt::node {
namespace {
constexpr int64_t kUnregisterTimeoutUs = 200'000;
}  // namespace

Shutdown::Shutdown(net::Loop& loop, const NodeManagerOptions& options, Sessions& sessions,
                   Events events)
    : loop_(loop),
      options_(options),
      sessions_(sessions),
      events_(std::move(events)),
      drain_alarm_(loop, [this] { leave_if_drained(); }) {}

void Shutdown::connect(CoreDriver& driver, HeadLink& head, Processes& processes) {
  driver_ = &driver;
  head_ = &head;
  drain_watch_ = std::make_unique<DrainWatch>(driver.core());
  ends_ = std::make_unique<ProcessEnds>(loop_, processes.starter(), processes.jobs(),
                                        [this] { finish(); });
}

Result<proto::DrainReply> Shutdown::drain(const proto::DrainRequest& request, int64_t store_used) {
  if (begun_)
    return make_error(Code::kUnavailable,
                      "the node is leaving the cluster already: " + reason_.message);
  RT_ASSIGN(proto::DrainReply reply, drain_watch_->ask(request, store_used, system_now()));
  if (!reply.accepted()) return reply;
  RT_INFO("draining ({}): this node takes no new work", request.message());
  driver_->drive([&](NodeCore& core, Now now) { core.drain(*drain_watch_->accepted(), now); });
  drain_alarm_.ring_by(drain_watch_->next_tick_us());
  return reply;
}

void Shutdown::leave_if_drained() {
  if (!drain_watch_->tick(system_now())) return drain_alarm_.ring_by(drain_watch_->next_tick_us());
  const proto::NodeDrain& drain = *drain_watch_->accepted();
  stop({drain.reason(), fmt::format("drained: {}", drain.message()), Code::kOk, kGentleStopUs});
}

void Shutdown::stop(const StopReason& reason) {
  if (begun_) return;
  begun_ = true;
  reason_ = reason;
  if (reason.failure == Code::kOk) {
    RT_INFO("stopping: {}", reason.message);
  } else {
    RT_ERROR("stopping: {}", reason.message);
  }
  events_.on_begin(reason.message);
  if (!driver_) return finish();
  driver_->drive([](NodeCore& core, Now) { core.stop(); });
  driver_->stop();
  head_->stop();
  say_farewell();
  // Posted, because stop() may run inside a callback of a connection that is closed here.
  loop_.post([this, alive = alive_] {
    if (!*alive) return;
    ends_->ask_all();
    sessions_.tell_drivers(reason_.message, true);
    sessions_.close_all(
        make_error(Code::kUnavailable, "the node-manager stops: " + reason_.message));
    ends_->wait(reason_.grace_us);
  });
}

void Shutdown::say_farewell() {
  rpc::Connection* connection = head_->connection();
  if (!connection) return;
  proto::UnregisterNodeRequest farewell;
  farewell.set_node_id(options_.node_id.binary());
  farewell.set_reason(reason_.death_reason);
  farewell.set_message(reason_.message);
  rpc::call(*connection, &proto::HeadService::Stub::UnregisterNode, farewell, kUnregisterTimeoutUs,
            [](Result<proto::Empty>) {});
  connection->flush();
}

void Shutdown::finish() {
  std::error_code ignored;
  // Packages that this node's workers have unpacked.
  std::filesystem::remove_all(options_.session_dir + "/runtime_resources", ignored);
  // The parent process bound an inherited socket, and only this process is left to unlink it.
  if (options_.unix_listen_fd >= 0) ::unlink(options_.socket_path.c_str());
  loop_.post([this, alive = alive_] {
    if (*alive)
      events_.on_ended(reason_.failure == Code::kOk ? Status()
                                                    : make_error(reason_.failure, reason_.message));
  });
}

}  // namespace rt::node
