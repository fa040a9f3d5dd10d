// Serves stacks and profiles of this process to every peer that may connect to it.
//
// Threading: requests arrive and are answered in the loop's thread; in between, each has a thread
// of its own, which takes the samples. The destructor stops profiles under way and joins their
// threads. It must run in the loop's thread (or under the loop's mutex), before the loop ends.
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
  // Shared with the threads and with the functions they post to the loop, which may run after the
  // server is gone.
  struct State {
    std::atomic<bool> stop{false};
    std::list<std::thread> threads;  // Only the loop's thread uses it.
  };
  using Work = std::function<Result<proto::StackSamples>(const std::atomic<bool>& stop)>;
  // Runs `work` in a thread and answers the call from the loop. Fails with kResourceExhausted at
  // once if too many threads are running.
  void answer_later(google::protobuf::RpcController* call, proto::StackSamples* reply,
                    google::protobuf::Closure* done, Work work);

  net::Loop& loop_;
  std::shared_ptr<State> state_;
};

}  // namespace rt::profile
