#include "daemons/node_manager/service/store_link.h"

#include <fmt/core.h>

#include <chrono>
#include <thread>

#include "common/base/clock.h"

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

StoreLink::StoreLink(net::Loop& loop, const Settings& settings, std::string socket_path,
                     rpc::Identity me, std::function<void(const Error&)> on_lost)
    : loop_(loop),
      settings_(settings),
      socket_path_(std::move(socket_path)),
      me_(std::move(me)),
      on_lost_(std::move(on_lost)) {}

StoreLink::~StoreLink() {
  *alive_ = false;
  if (timer_) loop_.cancel(timer_);
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
  timer_ = 0;
  rpc::Target target;
  target.address = net::Address::unix_socket(socket_path_);
  rpc::connect(
      loop_, target, me_, settings_.connect_timeout_ms * 1000,
      [this, alive = alive_](Result<std::shared_ptr<rpc::Connection>> result) {
        if (!*alive) return;
        if (!result) {
          if (loop_.now_us() - started_us_ > settings_.connect_timeout_ms * 1000) {
            return on_lost_(unreachable(socket_path_, result.error()));
          }
          timer_ = loop_.run_after(kRetryUs, [this] { attempt(); });
          return;
        }
        connection_ = std::move(*result);
        connection_->set_closed_handler([this](const Error& why) {
          connection_.reset();
          on_lost_(make_error(why.code, fmt::format("the node's object store at {} is gone: {}",
                                                    socket_path_, why.message)));
        });
        if (early_.worker_ids_size() > 0 || early_.job_ids_size() > 0) owners_gone(early_);
      });
}

void StoreLink::owners_gone(const proto::OwnersGone& gone) {
  if (connection_) {
    rpc::notify(*connection_, &proto::ObjectStoreService::Stub::FreeOwnedBy, gone);
  } else if (&gone != &early_) {
    early_.MergeFrom(gone);
  }
}

void StoreLink::get_stats(std::function<void(Result<proto::StoreStats>)> done) {
  if (!connection_)
    return done(make_error(Code::kUnavailable, "the object store is not connected"));
  rpc::call(*connection_, &proto::ObjectStoreService::Stub::GetStats, proto::Empty(),
            kStatsTimeoutUs, std::move(done));
}

}  // namespace rt::node
