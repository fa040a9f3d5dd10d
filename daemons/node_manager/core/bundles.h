// The bundles of placement groups that this node holds. Each is a room of its own, taken out of the
// node's. A bundle that is given back stays in the table until the last process that ran in it has
// been reaped: until then its amounts are in use.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "common/proto/head.pb.h"
#include "daemons/node_manager/core/room.h"
#include "daemons/node_manager/core/types.h"

namespace rt::node {

struct Bundle {
  int64_t epoch = 0;  // the attempt that reserved it (PrepareBundlesRequest)
  Room room;
  GpuShare devices;        // Devices of the node, which `room` shares out.
  bool returning = false;  // it takes nothing new and ends with its last process
};

class Bundles {
 public:
  // Returns null for a bundle that is not here.
  const Bundle* find(const RoomKey& key) const;
  const std::map<RoomKey, Bundle>& all() const { return bundles_; }
  size_t size() const { return bundles_.size(); }
  std::vector<RoomKey> of_group(const GroupId& group) const;
  static constexpr int64_t kAnyEpoch = std::numeric_limits<int64_t>::max();
  // The bundles that `wanted` names, of attempts up to `newest_epoch`, that are large enough for
  // the request, whether or not they have room now; lowest index first.
  std::vector<RoomKey> candidates(const RoomKey& wanted, const ResourceSet& request,
                                  int64_t newest_epoch = kAnyEpoch) const;

  void hold(const RoomKey& key, Bundle bundle);
  void set_returning(const RoomKey& key);
  // Removes a bundle in which nothing is left, and returns it.
  Bundle remove(const RoomKey& key);
  // The room of a bundle that is here, for a change.
  Room& change(const RoomKey& key);
  // Increases with every change.
  int64_t version() const { return version_; }

  // The amounts of all bundles together, and those in use.
  const ResourceSet& reserved() const { return reserved_; }
  ResourceSet reserved_used() const;
  // Adds the bundles that are not being given back.
  void fill(google::protobuf::RepeatedPtrField<proto::HeldBundle>* out) const;
  // Says why a request does not fit into what candidates() looks at: a phrase that continues
  // "waits for ".
  std::string obstacle(const RoomKey& wanted, const ResourceSet& request,
                       int64_t newest_epoch = kAnyEpoch) const;

 private:
  std::map<RoomKey, Bundle> bundles_;
  ResourceSet reserved_;
  int64_t version_ = 0;
};

// All rooms of a node.
class Rooms {
 public:
  explicit Rooms(Room node) : node_(std::move(node)) {}

  const Room& node() const { return node_; }
  const Bundles& bundles() const { return bundles_; }
  Bundles& bundles() { return bundles_; }
  // The room must be here.
  const Room& at(const RoomKey& key) const;
  Room& change(const RoomKey& key) { return key.is_node() ? node_ : bundles_.change(key); }
  int64_t version() const { return node_.resources().version() + bundles_.version(); }

 private:
  Room node_;
  Bundles bundles_;
};

// Names a bundle for people, or with index -1 any bundle of its group.
std::string bundle_name(const RoomKey& bundle);

}  // namespace rt::node
