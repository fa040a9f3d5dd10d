// The requests of clients that the store answers later.
#pragma once

#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "common/proto/object_store.pb.h"
#include "common/rpc/client.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

// The RPC layer keeps call and reply until done->Run().
struct HeldCall {
  ClientId client = 0;
  rpc::ServerCall* call = nullptr;
  std::variant<proto::CreateReply*, proto::LeaseExtentReply*, proto::GetReply*, proto::PullReply*>
      reply;
  google::protobuf::Closure* done = nullptr;  // Null if there is no such call.
  // Set for a Pull, which waits for the core or the fetcher.
  ObjectId pulled;
  Range range;
};

// Used in the loop's thread only.
class HeldCalls {
 public:
  CallId add(HeldCall call) {
    calls_[++last_] = std::move(call);
    return last_;
  }
  // Returns an empty call if it was taken already.
  HeldCall take(CallId id) {
    auto node = calls_.extract(id);
    return node.empty() ? HeldCall{} : node.mapped();
  }
  // Takes the requests of a client that is gone. Its Pulls stay: they end by their own answer,
  // which has a pin.
  std::vector<HeldCall> take_all_of(ClientId client) {
    std::vector<HeldCall> taken;
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
  std::vector<HeldCall> take_all() {
    std::vector<HeldCall> taken;
    for (auto& [id, call] : std::exchange(calls_, {})) taken.push_back(std::move(call));
    return taken;
  }

 private:
  std::unordered_map<CallId, HeldCall> calls_;
  CallId last_ = 0;
};

}  // namespace rt::store
