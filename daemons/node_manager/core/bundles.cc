#include "daemons/node_manager/core/bundles.h"

#include <fmt/format.h>

#include <algorithm>

namespace rt::node {
namespace {

// The amounts that the request lacks in the room, by name: "CPU and GPU".
std::string lacking(const Room& room, const ResourceSet& request) {
  std::string names;
  for (const auto& [name, units] : request.all()) {
    if (room.resources().available().units(name) < units)
      names += (names.empty() ? "" : " and ") + name;
  }
  return names;
}

}  // namespace

std::string bundle_name(const RoomKey& bundle) {
  return bundle.index < 0
             ? fmt::format("a bundle of placement group {}", bundle.group.hex())
             : fmt::format("bundle {} of placement group {}", bundle.index, bundle.group.hex());
}

const Bundle* Bundles::find(const RoomKey& key) const {
  auto it = bundles_.find(key);
  return it == bundles_.end() ? nullptr : &it->second;
}

std::vector<RoomKey> Bundles::of_group(const GroupId& group) const {
  std::vector<RoomKey> keys;
  for (auto it = bundles_.lower_bound({group, -1});
       it != bundles_.end() && it->first.group == group; ++it)
    keys.push_back(it->first);
  return keys;
}

std::vector<RoomKey> Bundles::candidates(const RoomKey& wanted, const ResourceSet& request,
                                         int64_t newest_epoch) const {
  std::vector<RoomKey> keys;
  auto consider = [&](const RoomKey& key, const Bundle& bundle) {
    if (!bundle.returning && bundle.epoch <= newest_epoch && bundle.room.feasible(request))
      keys.push_back(key);
  };
  if (wanted.index >= 0) {
    if (const Bundle* bundle = find(wanted)) consider(wanted, *bundle);
    return keys;
  }
  for (auto it = bundles_.lower_bound({wanted.group, -1});
       it != bundles_.end() && it->first.group == wanted.group; ++it)
    consider(it->first, it->second);
  return keys;
}

void Bundles::hold(const RoomKey& key, Bundle bundle) {
  reserved_.add(bundle.room.resources().total());
  RT_CHECK(bundles_.emplace(key, std::move(bundle)).second);
  ++version_;
}

void Bundles::set_returning(const RoomKey& key) {
  bundles_.at(key).returning = true;
  ++version_;
}

Bundle Bundles::remove(const RoomKey& key) {
  auto taken = bundles_.extract(key);
  RT_CHECK(!taken.empty());
  const LocalResources& resources = taken.mapped().room.resources();
  RT_CHECK(resources.available() == resources.total());
  reserved_.subtract(resources.total());
  ++version_;
  return std::move(taken.mapped());
}

Room& Bundles::change(const RoomKey& key) {
  ++version_;
  return bundles_.at(key).room;
}

ResourceSet Bundles::reserved_used() const {
  ResourceSet used;
  for (const auto& [key, bundle] : bundles_) {
    const LocalResources& resources = bundle.room.resources();
    if (resources.available() == resources.total()) continue;
    ResourceSet of_this;
    for (const auto& [name, units] : resources.total().all()) {
      // More than all may be in use for a while (local_resources.h).
      const int64_t free = std::max<int64_t>(0, resources.available().units(name));
      of_this.set_units(name, units - free);
    }
    used.add(of_this);
  }
  return used;
}

void Bundles::fill(google::protobuf::RepeatedPtrField<proto::HeldBundle>* out) const {
  for (const auto& [key, bundle] : bundles_) {
    if (bundle.returning) continue;
    proto::HeldBundle& held = *out->Add();
    held.set_group_id(key.group.binary());
    held.set_index(key.index);
    held.set_epoch(bundle.epoch);
    bundle.room.resources().total().to_proto(held.mutable_resources());
  }
}

std::string Bundles::obstacle(const RoomKey& wanted, const ResourceSet& request,
                              int64_t newest_epoch) const {
  const std::string what = bundle_name(wanted);
  if (wanted.index >= 0) {
    const Bundle* bundle = find(wanted);
    if (!bundle || bundle->epoch > newest_epoch) return what + ": it is not here yet";
    if (bundle->returning) return what + ": it is being given back";
    const Room& room = bundle->room;
    if (!room.feasible(request))
      return fmt::format("{}: it has only {}", what, room.resources().total().to_string());
    const std::string names = lacking(room, request);
    return names.empty() ? what + ": no device of it has enough free"
                         : fmt::format("{}: its {} is in use", what, names);
  }
  const std::vector<RoomKey> large_enough = candidates(wanted, request, newest_epoch);
  if (large_enough.empty())
    return candidates(wanted, {}, newest_epoch).empty()
               ? what + ": none is here yet"
               : fmt::format("{}: none that is here has {}", what, request.to_string());
  const std::string names = lacking(find(large_enough.front())->room, request);
  return names.empty() ? what + ": no device of those here has enough free"
                       : fmt::format("{}: the {} of those here is in use", what, names);
}

const Room& Rooms::at(const RoomKey& key) const {
  if (key.is_node()) return node_;
  const Bundle* bundle = bundles_.find(key);
  RT_CHECK(bundle);
  return bundle->room;
}

}  // namespace rt::node
