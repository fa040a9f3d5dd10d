// The extents leased to this client. Small objects are cut from the current one, and the next one
// is requested before that is used up. An extent is finished when nothing more fits into it and
// everything cut from it has been sealed or aborted; the daemon learns that with the next seal.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rt::store {

// Not thread-safe: used under the mutex of the StoreClient's owner.
class ExtentPool {
 public:
  struct Cut {
    uint64_t extent = 0;
    int64_t offset = 0;
  };

  void add(uint64_t id, int64_t offset, int64_t size) {
    extents_[id] = {offset, offset + size, 0, false};
    ready_.push_back(id);
  }
  std::optional<Cut> cut(int64_t size) {
    int64_t room = round(size);
    while (!ready_.empty()) {
      uint64_t id = ready_.front();
      Extent& extent = extents_[id];
      if (extent.end - extent.next >= room) {
        int64_t offset = extent.next;
        extent.next += room;
        extent.open++;
        return Cut{id, offset};
      }
      // The extent is kept, since smaller objects may still fit.
      if (ready_.size() == 1 && extent.end - extent.next >= kWorthKeeping) return std::nullopt;
      ready_.pop_front();
      extent.used_up = true;
      finish(id, extent);
    }
    return std::nullopt;
  }
  bool is_nearly_used_up() const {
    if (ready_.size() > 1) return false;
    if (ready_.empty()) return true;
    const Extent& extent = extents_.at(ready_.front());
    return extent.end - extent.next < kAskAhead;
  }
  void on_sealed(uint64_t id) {
    auto it = extents_.find(id);
    if (it == extents_.end()) return;
    it->second.open--;
    finish(id, it->second);
  }
  void on_aborted(uint64_t id, int64_t offset, int64_t size) {
    auto it = extents_.find(id);
    if (it == extents_.end()) return;
    // The object was cut last, so its room can be cut again.
    if (it->second.next == offset + round(size)) it->second.next = offset;
    on_sealed(id);
  }
  std::vector<uint64_t> take_finished() { return std::exchange(finished_, {}); }

 private:
  static constexpr int64_t kUnit = 64;
  static constexpr int64_t kAskAhead = 2 << 20;  // Twice the largest small object.
  static constexpr int64_t kWorthKeeping = 256 * 1024;

  struct Extent {
    int64_t next = 0;
    int64_t end = 0;
    int64_t open = 0;  // Objects that were cut, and neither sealed nor aborted.
    bool used_up = false;
  };

  static int64_t round(int64_t size) {
    return (std::max<int64_t>(size, 1) + kUnit - 1) / kUnit * kUnit;
  }
  void finish(uint64_t id, Extent& extent) {
    if (!extent.used_up || extent.open > 0) return;
    finished_.push_back(id);
    extents_.erase(id);
  }

  std::unordered_map<uint64_t, Extent> extents_;
  // Extents with room; the first one is in use.
  std::deque<uint64_t> ready_;
  std::vector<uint64_t> finished_;
};

}  // namespace rt::store
