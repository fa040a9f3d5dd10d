// Placement groups of the API on a cluster.
#include <fmt/core.h>

#include "cluster_runtime.h"
#include "common/base/clock.h"
#include "common/resources/resource_set.h"
#include "errors.h"
#include "worker/placement_groups.h"

namespace ray::internal {
namespace {

namespace w = rt::worker;
namespace proto = rt::proto;

void check_new(const GroupRecord& group) {
  if (group.strategy < 0 || group.strategy > proto::GroupSpec::STRICT_SPREAD)
    throw RayException("A placement group needs one of the four placement strategies.");
  if (group.bundles.empty()) throw RayException("A placement group needs a bundle or more.");
}

proto::GroupSpec spec_of(const GroupRecord& group, const std::string& ray_namespace) {
  proto::GroupSpec spec;
  spec.set_name(group.name);
  spec.set_ray_namespace(ray_namespace);
  spec.set_strategy(static_cast<proto::GroupSpec::Strategy>(group.strategy));
  for (size_t i = 0; i < group.bundles.size(); ++i) {
    const auto& amounts = group.bundles[i];
    auto resources = rt::ResourceSet::from_map({amounts.begin(), amounts.end()});
    if (!resources) throw_error(resources.error());
    if (resources->empty())
      throw RayException(fmt::format(
          "Bundle {} of the placement group reserves nothing: give it a positive amount.", i));
    resources->to_proto(spec.add_bundles()->mutable_resources());
  }
  return spec;
}

GroupRecord record_of(const proto::GroupInfo& info) {
  GroupRecord record;
  record.id = info.spec().group_id();
  record.name = info.spec().name();
  record.strategy = info.spec().strategy();
  record.state = info.state();
  for (const auto& bundle : info.spec().bundles()) {
    auto& amounts = record.bundles.emplace_back();
    const rt::ResourceSet resources = rt::ResourceSet::from_proto(bundle.resources());
    for (const auto& [name, units] : resources.all()) amounts[name] = resources.get(name);
  }
  return record;
}

// Empty when there is no such group.
GroupRecord found(const rt::Result<proto::GroupInfo>& info) {
  if (info) return record_of(*info);
  if (info.error().code != rt::Code::kNotFound) throw_error(info.error());
  return {};
}

rt::GroupId id_of(const std::string& id) {
  if (!rt::GroupId::is_valid(id))
    throw RayException("The bytes are not the id of a placement group, from GetID().");
  return rt::GroupId::from_binary(id);
}

}  // namespace

GroupRecord ClusterRuntime::CreateGroup(GroupRecord group) {
  check_new(group);
  auto id = w::create_group(*worker_, spec_of(group, Namespace()));
  if (!id) throw_error(id.error());
  group.id = id->binary();
  group.state = proto::GROUP_PENDING;
  return group;
}

void ClusterRuntime::RemoveGroup(const std::string& id) {
  if (auto done = w::remove_group(*worker_, id_of(id)); !done) throw_error(done.error());
}

bool ClusterRuntime::WaitForGroup(const std::string& id, int timeout_s) {
  const rt::GroupId group = id_of(id);
  const int64_t deadline =
      timeout_s < 0 ? -1 : rt::steady_now_us() + int64_t{timeout_s} * 1'000'000;
  w::Waited waited;
  do {
    waited = w::wait_group(*worker_, group, deadline);
    throw_if_stopped();
  } while (waited == w::Waited::kInterrupted);
  if (waited == w::Waited::kFailed)
    throw RayException(
        fmt::format("The placement group {} was removed or does not exist.", group.hex()));
  return waited == w::Waited::kDone;
}

std::vector<GroupRecord> ClusterRuntime::Groups() {
  auto groups = w::list_groups(*worker_);
  if (!groups) throw_error(groups.error());
  std::vector<GroupRecord> records;
  for (const proto::GroupInfo& info : *groups) records.push_back(record_of(info));
  return records;
}

GroupRecord ClusterRuntime::FindGroup(const std::string& id) {
  return rt::GroupId::is_valid(id) ? found(w::group_info(*worker_, rt::GroupId::from_binary(id)))
                                   : GroupRecord();
}

GroupRecord ClusterRuntime::FindNamedGroup(const std::string& name) {
  return name.empty() ? GroupRecord() : found(w::find_group(*worker_, name, Namespace()));
}

}  // namespace ray::internal
