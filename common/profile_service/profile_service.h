// Stacks and profiles of this process, for whoever may connect to it.
//
// Threads: the loop's; each question has a thread until it is answered. The destructor stops
// profiles under way and waits for their threads; it runs in the loop's thread (or under the loop's
// mutex), before the loop ends.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "common/base/status.h"
#include "common/net/loop.h"
#include "common/proto/profile.pb.h"

namespace rt::profile {

class ProfileServer final : public proto::ProfileService {
 public:
  explicit ProfileServer(net::Loop& loop) : loop_(loop), state_(std::make_shared<State>()) {}
  ~ProfileServer() override;

  void GetStacks(google::protobuf::RpcController*, const proto::StacksRequest*,
                 proto::StackSamples*, google::protobuf::Closure*) override;
  void Profile(google::protobuf::RpcController*, const proto::ProfileRequest*, proto::StackSamples*,
               google::protobuf::Closure*) override;

 private:
  // Shared with the threads and what they post.
  struct State {
    std::atomic<bool> stop{false};
    std::list<std::thread> threads;  // of the loop's thread only
  };
  using Work = std::function<Result<proto::StackSamples>(const std::atomic<bool>& stop)>;
  void answer_later(google::protobuf::RpcController* call, proto::StackSamples* reply,
                    google::protobuf::Closure* done, Work work);

  net::Loop& loop_;
  std::shared_ptr<State> state_;
};

}  // namespace rt::profile
