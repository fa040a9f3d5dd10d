#include "worker/setup.h"

#include <fmt/core.h>
#include <unistd.h>

#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/rpc/client.h"

namespace rt::worker {
namespace {

constexpr int64_t kTimeoutUs = 60'000'000;

Result<std::unique_ptr<rpc::SyncClient>> connect_to(net::Address address,
                                                    const std::string& token) {
  rpc::Target target;
  target.address = std::move(address);
  rpc::Identity me;
  me.role = "client";
  me.token = token;
  return rpc::SyncClient::connect(target, me, kTimeoutUs);
}

}  // namespace

Result<std::string> fetch_value(const std::string& head_address, const std::string& token,
                                const std::string& ns, const std::string& key) {
  RT_ASSIGN(net::Address address, net::Address::parse(head_address));
  RT_ASSIGN(auto client, connect_to(std::move(address), token));
  proto::KvGetRequest request;
  request.set_ns(ns);
  request.set_key(key);
  RT_ASSIGN(auto reply, client->call(&proto::HeadService::Stub::KvGet, request, kTimeoutUs));
  if (!reply.found())
    return make_error(Code::kNotFound, fmt::format("no key '{}' in namespace '{}'", key, ns));
  return std::move(*reply.mutable_value());
}

Status report_setup_failure(const std::string& node_manager_socket, const WorkerId& worker,
                            const std::string& message) {
  RT_ASSIGN(auto client, connect_to(net::Address::unix_socket(node_manager_socket), ""));
  proto::WorkerSetupFailure failure;
  failure.set_worker_id(worker.binary());
  failure.set_pid(getpid());
  failure.set_message(message);
  auto told =
      client->call(&proto::NodeManagerService::Stub::WorkerSetupFailed, failure, kTimeoutUs);
  if (!told) return told.error();
  return {};
}

}  // namespace rt::worker
