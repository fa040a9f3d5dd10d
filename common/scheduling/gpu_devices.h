// The GPU devices of a node, as far as a decision about bundles can know them.
//
// A node-manager gives a demand of 1 or more whole devices, and the rest of a demand, or one below
// 1, is a part of one device (daemons/node_manager/core/gpu_pool.h). A decision must share devices
// out in the same way, or nodes refuse what it chooses: two devices have room for 0.6 twice, not
// three times. Other processes know only how much of a node's GPUs is free. They take that amount
// to be whole devices and one part. This is right while nothing runs on the node, and otherwise the
// best possible guess.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rt::scheduling {

// Units of GPU that bundles ask for, in descending order.
using GpuDemands = std::vector<int64_t>;

class GpuDevices {
 public:
  explicit GpuDevices(int64_t free_units = 0);

  bool fits(int64_t units) const;
  void take(int64_t units);  // fits(units) must hold.
  // Takes all demands, which are in descending order. Returns false when one does not fit; those
  // before it are then taken.
  bool take_all(std::span<const int64_t> demands);
  friend bool operator==(const GpuDevices&, const GpuDevices&) = default;

 private:
  int64_t whole_ = 0;
  std::vector<int64_t> parts_;  // The free part of each device that is in use; ascending.
};

// The devices of one node while bundles are laid out. The node serves the largest demand first, in
// whatever order the bundles are put here.
class GpuRoom {
 public:
  // `refused`, if given, has sets of demands for which the node is known to have no devices. It
  // must outlive this object.
  explicit GpuRoom(GpuDevices devices = GpuDevices(),
                   const std::vector<GpuDemands>* refused = nullptr)
      : all_(std::move(devices)), left_(all_), refused_(refused) {}

  // Returns whether the demands, in descending order, find devices beside those that were put.
  bool fits(std::span<const int64_t> demands) const;
  void put(int64_t units);
  void take_back(int64_t units);
  const GpuDevices& left() const { return left_; }
  // Returns whether equal demands fit into both rooms.
  bool same_left(const GpuRoom& other) const {
    return !refused_ && !other.refused_ && left_ == other.left_;
  }

 private:
  void lay_out();

  GpuDevices all_, left_;
  GpuDemands put_;
  const std::vector<GpuDemands>* refused_;
};

}  // namespace rt::scheduling
