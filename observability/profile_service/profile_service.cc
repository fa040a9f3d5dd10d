#include "observability/profile_service/profile_service.h"

#include <pthread.h>

#include "common/base/thread.h"
#include "common/rpc/connection.h"
#include "observability/profile/sampler.h"

namespace rt::profile {
namespace {

// A few are enough: while one request takes samples, the sampler refuses all others at once.
constexpr size_t kMaxThreads = 8;

}  // namespace

ProfileServer::~ProfileServer() {
  state_->stop = true;
  for (auto& thread : state_->threads) thread.join();
  state_->threads.clear();
}

void ProfileServer::answer_later(google::protobuf::RpcController* call, proto::StackSamples* reply,
                                 google::protobuf::Closure* done, Work work) {
  if (state_->threads.size() >= kMaxThreads) {
    rpc::server_call(call).fail(make_error(
        Code::kResourceExhausted, "too many requests for stacks of this process: try again later"));
    return done->Run();
  }
  auto thread = state_->threads.emplace(state_->threads.end());
  auto started = start_thread([this, weak = std::weak_ptr<State>(state_), thread, call, reply, done,
                               work = std::move(work), stop = state_] {
    pthread_setname_np(pthread_self(), "ray-profile");
    auto samples = std::make_shared<Result<proto::StackSamples>>(work(stop->stop));
    if (stop->stop) return;
    loop_.post([weak, thread, call, reply, done, samples] {
      auto state = weak.lock();
      if (!state || state->stop) return;
      thread->join();
      state->threads.erase(thread);
      if (*samples) {
        *reply = std::move(**samples);
      } else {
        rpc::server_call(call).fail(samples->error());
      }
      done->Run();
    });
  });
  if (started) {
    *thread = std::move(*started);
    return;
  }
  state_->threads.erase(thread);
  rpc::server_call(call).fail(std::move(started).error());
  done->Run();
}

void ProfileServer::GetStacks(google::protobuf::RpcController* call,
                              const proto::StacksRequest* request, proto::StackSamples* reply,
                              google::protobuf::Closure* done) {
  answer_later(call, reply, done, [native = request->native()](const std::atomic<bool>&) {
    return take_stacks(native);
  });
}

void ProfileServer::Profile(google::protobuf::RpcController* call,
                            const proto::ProfileRequest* request, proto::StackSamples* reply,
                            google::protobuf::Closure* done) {
  answer_later(call, reply, done, [wanted = *request](const std::atomic<bool>& stop) {
    return take_profile(wanted, stop);
  });
}

}  // namespace rt::profile
