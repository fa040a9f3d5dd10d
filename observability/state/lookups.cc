#include "observability/state/lookups.h"

#include "common/base/ids.h"

namespace rt::state {

using HeadStub = proto::HeadService::Stub;

Result<std::optional<std::string>> kv_value(Sources& sources, const char* ns,
                                            const std::string& key) {
  proto::KvGetRequest request;
  request.set_ns(ns);
  request.set_key(key);
  RT_ASSIGN(auto reply, sources.ask_head(&HeadStub::KvGet, request));
  if (!reply.found()) return std::optional<std::string>();
  return std::optional(std::move(*reply.mutable_value()));
}

Result<proto::GetActorReply> actor_info(Sources& sources, const std::string& actor_hex) {
  proto::GetActorRequest request;
  request.set_actor_id(from_hex(actor_hex));
  return sources.ask_head(&HeadStub::GetActor, request);
}

Result<proto::GetSnapshotReply> all_jobs(Sources& sources) {
  proto::GetSnapshotRequest request;
  request.set_jobs(true);
  return sources.ask_head(&HeadStub::GetSnapshot, request);
}

rpc::Target target_of(const proto::WorkerAddress& address) {
  return {net::Address::tcp(address.ip(), address.port()), "worker", to_hex(address.worker_id())};
}

}  // namespace rt::state
