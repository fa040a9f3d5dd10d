#include "daemons/head/core/packages.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace rt::head {
namespace {

// The uploader names the package a moment later, in the job it submits; until then nothing does.
constexpr int64_t kJustUploadedUs = 60'000'000;

std::string name_of(const std::string& key) { return key.substr(0, key.find('#')); }

}  // namespace

std::map<std::string, Packages::Package> Packages::all() const {
  std::map<std::string, Package> found;
  kv_.for_each(kNamespace, [&](const std::string& key, size_t bytes, bool of_jobs) {
    Package& package = found[name_of(key)];
    package.bytes += static_cast<int64_t>(bytes);
    package.of_jobs |= of_jobs;
  });
  for (auto& [name, package] : found) {
    if (auto it = uploaded_us_.find(name); it != uploaded_us_.end())
      package.uploaded_us = it->second;
  }
  return found;
}

void Packages::drop(const std::string& name) {
  std::vector<std::string> keys;
  kv_.for_each(kNamespace, [&](const std::string& key, size_t, bool) {
    if (name_of(key) == name) keys.push_back(key);
  });
  // The key NAME is the first and is deleted first, because whoever finds it expects all pieces.
  for (const std::string& key : keys) {
    proto::KvGetRequest request;
    request.set_ns(kNamespace);
    request.set_key(key);
    kv_.erase(request, [](Result<proto::KvPutReply>) {});
  }
  uploaded_us_.erase(name);
}

Status Packages::make_room(const proto::KvPutRequest& request,
                           const std::function<bool(const std::string&)>& in_use, Now now) {
  // The package ends with its jobs.
  if (!request.job_id().empty()) return {};
  const std::string mine = name_of(request.key());
  const auto packages = all();
  int64_t total = static_cast<int64_t>(request.value().size()), kept = 0;
  std::vector<std::pair<int64_t, std::string>> idle;
  for (const auto& [name, package] : packages) {
    total += package.bytes;
    const bool fresh =
        package.uploaded_us > 0 && now.steady_us - package.uploaded_us < kJustUploadedUs;
    if (name != mine && !package.of_jobs && !fresh && !in_use(name)) {
      idle.emplace_back(package.uploaded_us, name);
    } else {
      kept += package.bytes;
    }
  }
  if (total > settings_.packages_max_bytes) {
    std::sort(idle.begin(), idle.end());
    for (const auto& [uploaded_us, name] : idle) {
      if (total <= settings_.packages_max_bytes) break;
      total -= packages.at(name).bytes;
      drop(name);
    }
  }
  if (total > settings_.packages_max_bytes) {
    return make_error(
        Code::kResourceExhausted,
        fmt::format("package '{}' needs {} bytes, and {} bytes of packages are in use or have just "
                    "been uploaded: with it they are more than "
                    "packages_max_bytes ({}); end jobs, or start the head with a larger value",
                    mine, request.value().size(), kept, settings_.packages_max_bytes));
  }
  uploaded_us_[mine] = now.steady_us;
  return {};
}

}  // namespace rt::head
