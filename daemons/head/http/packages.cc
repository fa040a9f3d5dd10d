#include "daemons/head/http/packages.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/json_text.h"
#include "observability/state/sources.h"

namespace rt::head {
namespace {

constexpr char kNamespace[] = "pkg";
constexpr size_t kChunkBytes = 16 << 20;
constexpr int64_t kPackageTimeoutUs = 60'000'000;

// The name becomes a directory on nodes.
Status check_name(const std::string& name) {
  bool good = !name.empty() && name.size() <= 255 && name.front() != '.' &&
              name.find_first_of(std::string_view("/\\#\0", 4)) == std::string::npos;
  if (good) return {};
  return make_error(
      Code::kInvalid,
      fmt::format("'{}' is not a valid package name: give a file name such as _ray_pkg_0123.zip",
                  name.substr(0, 100)));
}

Status put(state::Sources& sources, const std::string& key, std::string value) {
  proto::KvPutRequest request;
  request.set_ns(kNamespace);
  request.set_key(key);
  request.set_value(std::move(value));
  request.set_overwrite(true);
  auto reply = sources.ask_head(&proto::HeadService::Stub::KvPut, request);
  if (!reply) return reply.error();
  return {};
}

}  // namespace

Result<bool> has_package(const state::Cluster& cluster, const std::string& name) {
  RT_TRY(check_name(name));
  RT_ASSIGN(auto sources,
            state::Sources::connect(cluster.head_address, cluster.token, kPackageTimeoutUs));
  proto::KvGetRequest request;
  request.set_ns(kNamespace);
  request.set_key(name);
  RT_ASSIGN(auto reply, sources->ask_head(&proto::HeadService::Stub::KvGet, request));
  return reply.found();
}

Status put_package(const state::Cluster& cluster, const std::string& name,
                   const std::string& data) {
  RT_TRY(check_name(name));
  RT_ASSIGN(auto sources,
            state::Sources::connect(cluster.head_address, cluster.token, kPackageTimeoutUs));
  size_t chunks = (data.size() + kChunkBytes - 1) / kChunkBytes;
  for (size_t i = 0; i < chunks; ++i)
    RT_TRY(put(*sources, fmt::format("{}#{}", name, i), data.substr(i * kChunkBytes, kChunkBytes)));
  // The key NAME is written last, because whoever finds it expects all pieces.
  return put(*sources, name, json_text(nlohmann::json{{"size", data.size()}, {"chunks", chunks}}));
}

}  // namespace rt::head
