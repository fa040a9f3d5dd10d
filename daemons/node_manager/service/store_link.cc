#include "daemons/node_manager/service/store_link.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "common/base/clock.h"
#include "common/base/readable.h"

namespace rt::node {
namespace {
constexpr int64_t kRetryUs = 10'000;
constexpr int64_t kStatsTimeoutUs = 1'000'000;

Error unreachable(const std::string& socket_path, const Error& why) {
  return make_error(why.code, fmt::format("the object store at {} could not be reached: {}",
                                          socket_path, why.message));
}

}  // namespace

Result<int64_t> ask_store_capacity(const NodeManagerOptions& options) {
  rpc::Target target;
  target.address = net::Address::unix_socket(options.store_socket);
  rpc::Identity me;
  me.role = "client";  // the store ends when a connection with the role node_manager closes
  me.token = options.token;
  const int64_t limit_us = options.settings.connect_timeout_ms * 1000,
                deadline_us = steady_now_us() + limit_us;
  while (true) {
    auto client = rpc::SyncClient::connect(target, me, limit_us);
    if (client) {
      RT_ASSIGN(proto::StoreStats stats, (*client)->call(&proto::ObjectStoreService::Stub::GetStats,
                                                         proto::Empty(), limit_us));
      return stats.capacity();
    }
    if (client.error().code != Code::kUnavailable || steady_now_us() > deadline_us)
      return unreachable(options.store_socket, client.error());
    std::this_thread::sleep_for(std::chrono::microseconds(kRetryUs));
  }
}

StoreLink::StoreLink(net::Loop& loop, const NodeManagerOptions& options, rpc::Identity me,
                     Events events)
    : loop_(loop),
      settings_(options.settings),
      socket_path_(options.store_socket),
      me_(std::move(me)),
      events_(std::move(events)),
      watch_(settings_.store_ping_interval_ms * 1000, settings_.store_hung_after_ms * 1000),
      waits_(options.node_id, options.node_ip, settings_.create_wait_ms),
      attempt_alarm_(loop, [this] { attempt(); }),
      watch_alarm_(loop, [this] { act(watch_.tick(system_now())); }) {}

StoreLink::~StoreLink() {
  *alive_ = false;
  if (connection_) {
    connection_->set_closed_handler(nullptr);
    connection_->close(make_error(Code::kUnavailable, "the node-manager ends"));
  }
}

void StoreLink::start() {
  started_us_ = loop_.now_us();
  attempt();
}

void StoreLink::attempt() {
  rpc::Target target;
  target.address = net::Address::unix_socket(socket_path_);
  rpc::connect(loop_, target, me_, settings_.connect_timeout_ms * 1000,
               [this, alive = alive_](Result<std::shared_ptr<rpc::Connection>> result) {
                 if (!*alive) return;
                 if (!result) {
                   if (loop_.now_us() - started_us_ > settings_.connect_timeout_ms * 1000) {
                     return events_.on_lost(unreachable(socket_path_, result.error()));
                   }
                   attempt_alarm_.ring_by(loop_.now_us() + kRetryUs);
                   return;
                 }
                 connection_ = std::move(*result);
                 connection_->set_closed_handler([this](const Error& why) {
                   connection_.reset();
                   events_.on_lost(
                       make_error(why.code, fmt::format("the node's object store at {} is gone: {}",
                                                        socket_path_, why.message)));
                 });
                 if (early_.ByteSizeLong() > 0) owners_gone(early_);
                 act(watch_.tick(system_now()));
               });
}

void StoreLink::owners_gone(const proto::OwnersGone& gone) {
  if (connection_) {
    rpc::notify(*connection_, &proto::ObjectStoreService::Stub::FreeOwnedBy, gone);
  } else if (&gone != &early_) {
    early_.MergeFrom(gone);
  }
}

void StoreLink::act(const StoreWatch::Turn& turn) {
  if (turn.ask && connection_) {
    // Without a time-out: the watch keeps the time, and a late answer counts.
    rpc::call(*connection_, &proto::ObjectStoreService::Stub::GetStats, proto::Empty(), -1,
              [this, alive = alive_](Result<proto::StoreStats> stats) {
                // An error means that the connection is lost.
                if (!*alive || !stats) return;
                take(*stats);
                act(watch_.answered(system_now()));
              });
  }
  watch_alarm_.ring_by(watch_.next_tick_us());
  if (turn.changed) events_.on_problem();
}

void StoreLink::take(const proto::StoreStats& stats) {
  const bool is_first = std::exchange(pid_, stats.pid()) == 0;
  const StoreWaits::Turn turn = waits_.take(stats, system_now());
  if (std::exchange(used_, stats.used()) != stats.used() || turn.changed) events_.on_used();
  for (const proto::LeaseNotice& late : turn.notices) events_.on_late(late);
  if (is_first) events_.on_ready();
}

std::string StoreLink::problem() const {
  if (!watch_.hangs()) return {};
  const std::string remedy =
      pid_ == 0 ? std::string("end it: its node ends with it, and what was stored there is lost")
                : fmt::format(
                      "if somebody stopped it, `kill -CONT {0}` lets it go on; `kill -KILL "
                      "{0}` ends it and its node, and what was stored there is lost",
                      pid_);
  return fmt::format("its object store{} has not answered since {}: {}",
                     pid_ == 0 ? "" : fmt::format(" (process {})", pid_),
                     local_time(watch_.silent_since().wall_us / 1000), remedy);
}

void StoreLink::get_stats(std::function<void(Result<proto::StoreStats>)> done) {
  if (!connection_)
    return done(make_error(Code::kUnavailable, "the object store is not connected"));
  if (watch_.hangs()) return done(make_error(Code::kTimeout, problem()));
  rpc::call(*connection_, &proto::ObjectStoreService::Stub::GetStats, proto::Empty(),
            kStatsTimeoutUs,
            [this, alive = alive_, done = std::move(done)](Result<proto::StoreStats> stats) {
              if (*alive && stats) take(*stats);
              done(std::move(stats));
            });
}

}  // namespace rt::node
