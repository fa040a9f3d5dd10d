// The requests that a store answers later, and what becomes of them when their client ends.
// `Reply` is whatever the service needs to answer; this class never looks into it.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemons/object_store/core/types.h"

namespace rt::store {

template <class Reply>
class HeldCalls {
 public:
  struct Call {
    ClientId client = 0;
    Reply reply;
    // Set for a Pull: another store asks for this range of this object.
    ObjectId pulled = {};
    Range range = {};

    // Whether an object of this size has the range that a Pull asks for.
    bool lies_within(int64_t size) const {
      return range.offset <= size && range.size <= size - range.offset;
    }
  };

  CallId add(Call call) {
    calls_.emplace(++last_, std::move(call));
    return last_;
  }
  // Returns nothing if the call was taken already.
  std::optional<Call> take(CallId id) {
    auto node = calls_.extract(id);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  }
  // Takes the requests of a client that is gone. Its Pulls stay: they end by their own answer,
  // which has a pin.
  std::vector<Call> take_all_of(ClientId client) {
    std::vector<Call> taken;
    for (auto it = calls_.begin(); it != calls_.end();) {
      if (it->second.client != client || !it->second.pulled.is_nil()) {
        ++it;
        continue;
      }
      taken.push_back(std::move(it->second));
      it = calls_.erase(it);
    }
    return taken;
  }
  std::vector<Call> take_all() {
    std::vector<Call> taken;
    for (auto& [id, call] : std::exchange(calls_, {})) taken.push_back(std::move(call));
    return taken;
  }
  bool is_empty() const { return calls_.empty(); }

 private:
  std::unordered_map<CallId, Call> calls_;
  CallId last_ = 0;
};

}  // namespace rt::store
