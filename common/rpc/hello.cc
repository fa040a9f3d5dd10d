#include "common/rpc/hello.h"

#include <fmt/format.h>

#include "common/base/ids.h"
#include "common/base/token.h"
#include "common/rpc/build.h"
#include "common/rpc/frame.h"

namespace rt::rpc {
namespace {

Error wrong_version(uint32_t theirs) {
  return make_error(Code::kWrongVersion,
                    fmt::format("protocol version {} was offered, version {} is spoken here: "
                                "install the same release on every machine",
                                theirs, kProtocolVersion));
}

bool other_cluster(const std::string& mine, const std::string& theirs) {
  return !mine.empty() && !theirs.empty() && mine != theirs;
}

Error wrong_cluster(const std::string& wanted, const std::string& found) {
  return make_error(Code::kWrongCluster,
                    fmt::format("this is cluster {}, not {}: the address belongs to another "
                                "cluster, or the head was started anew; connect again",
                                to_hex(found).substr(0, 16), to_hex(wanted).substr(0, 16)));
}

}  // namespace

proto::Hello make_hello(const Identity& me) {
  proto::Hello hello;
  hello.set_protocol_version(kProtocolVersion);
  hello.set_cluster_id(me.cluster_id);
  hello.set_role(me.role);
  hello.set_peer_id(me.id);
  hello.set_token(me.token);
  hello.set_build(my_build());
  hello.set_job_config(me.job_config);
  return hello;
}

proto::HelloReply make_hello_reply(const Identity& me) {
  proto::HelloReply reply;
  reply.set_protocol_version(kProtocolVersion);
  reply.set_cluster_id(me.cluster_id);
  reply.set_role(me.role);
  reply.set_peer_id(me.id);
  reply.set_build(my_build());
  return reply;
}

Status check_hello(const Identity& me, const proto::Hello& hello, bool is_unix) {
  if (hello.protocol_version() != kProtocolVersion) return wrong_version(hello.protocol_version());
  if (!is_unix && !me.token.empty() && !same_secret(me.token, hello.token())) {
    const char* how = "set RAY_AUTH_TOKEN or put it into ~/.ray/auth_token";
    if (hello.token().empty())
      return make_error(Code::kUnauthenticated,
                        fmt::format("this cluster demands a token: {}", how));
    return make_error(Code::kUnauthenticated, fmt::format("{}: {}", kWrongToken, how));
  }
  if (other_cluster(me.cluster_id, hello.cluster_id()))
    return wrong_cluster(hello.cluster_id(), me.cluster_id);
  return {};
}

Status check_hello_reply(const Identity& me, const proto::HelloReply& reply) {
  if (reply.protocol_version() != kProtocolVersion) return wrong_version(reply.protocol_version());
  if (other_cluster(me.cluster_id, reply.cluster_id()))
    return wrong_cluster(me.cluster_id, reply.cluster_id());
  return {};
}

}  // namespace rt::rpc
