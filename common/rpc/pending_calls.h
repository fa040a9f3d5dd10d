// Private to common/rpc: the calls of one connection that wait for their answers.
#pragma once

#include <google/protobuf/message.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/net/loop.h"
#include "common/rpc/connection.h"

namespace rt::rpc {

struct PendingCall {
  Connection::RawDone done;
  const google::protobuf::Message* prototype;
  const google::protobuf::MethodDescriptor* method;
  MutableBytes target;  // Where the attachment of the answer is received; empty: anywhere.
  net::Loop::TimerId timer = 0;
};

// Timers and callbacks of the calls are the caller's business. Used in the loop's thread only.
class PendingCalls {
 public:
  // Returns the number of the call, which is never 0.
  uint32_t add(PendingCall call) {
    while (next_ == 0 || calls_.contains(next_)) ++next_;
    calls_.emplace(next_, Entry{std::move(call), begun_++});
    return next_++;
  }
  // Returns null if the call has ended; otherwise the pointer is valid until it ends.
  PendingCall* find(uint32_t id) {
    auto it = calls_.find(id);
    return it == calls_.end() ? nullptr : &it->second.call;
  }
  // Ends the call, if it has not ended.
  std::optional<PendingCall> take(uint32_t id) {
    auto node = calls_.extract(id);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped().call);
  }
  // Ends all calls, and returns them in the order in which they were added.
  std::vector<PendingCall> take_all() {
    std::vector<Entry> ended;
    for (auto& [id, entry] : calls_) ended.push_back(std::move(entry));
    calls_.clear();
    std::sort(ended.begin(), ended.end(),
              [](const Entry& a, const Entry& b) { return a.sequence < b.sequence; });
    std::vector<PendingCall> calls;
    calls.reserve(ended.size());
    for (Entry& entry : ended) calls.push_back(std::move(entry.call));
    return calls;
  }

  // Notes that the answer to this call has begun to arrive at the call's target; its message came
  // first.
  void begin_direct(uint32_t id, std::unique_ptr<google::protobuf::Message> message) {
    direct_ = id;
    direct_message_ = std::move(message);
  }
  bool is_direct(uint32_t id) const { return direct_ == id; }
  // Notes that the attachment has arrived, or will not. Returns the call (0: there is none) and its
  // message.
  std::pair<uint32_t, std::unique_ptr<google::protobuf::Message>> end_direct() {
    return {std::exchange(direct_, 0), std::move(direct_message_)};
  }

 private:
  struct Entry {
    PendingCall call;
    uint64_t sequence;
  };
  std::unordered_map<uint32_t, Entry> calls_;
  uint32_t next_ = 1;
  uint64_t begun_ = 0;
  uint32_t direct_ = 0;
  std::unique_ptr<google::protobuf::Message> direct_message_;
};

}  // namespace rt::rpc
