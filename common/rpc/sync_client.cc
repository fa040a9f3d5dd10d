#include "common/net/poll_loop.h"
#include "common/rpc/client.h"

namespace rt::rpc {

WaitedCall::WaitedCall(int64_t timeout_us) : answer_(make_error(Code::kUnavailable, "no answer")) {
  call_.options.timeout_us = timeout_us;
  call_.done = [this](Result<std::unique_ptr<google::protobuf::Message>> answer, Bytes) {
    answer_ = std::move(answer);
    answered_ = true;
  };
}

// Owns a PollLoop, which has no thread: the calling thread itself waits and reads.
struct SyncClient::Impl {
  net::PollLoop loop;
  std::shared_ptr<Connection> connection;  // Nobody else keeps a reference.

  bool run_until(const bool& flag, int64_t timeout_us) {
    int64_t deadline = timeout_us < 0 ? -1 : loop.now_us() + timeout_us;
    while (true) {
      loop.flush_all();
      if (flag) return true;
      int64_t left = deadline < 0 ? -1 : deadline - loop.now_us();
      if (deadline >= 0 && left <= 0) return false;
      net::PollLoop::Ready ready;
      loop.wait(ready, left);
      loop.dispatch(ready);
    }
  }
};

SyncClient::SyncClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SyncClient::~SyncClient() {
  if (impl_->connection)
    impl_->connection->close(make_error(Code::kUnavailable, "the client was closed"));
  impl_->connection.reset();
}

Result<std::unique_ptr<SyncClient>> SyncClient::connect(const Target& target, const Identity& me,
                                                        int64_t timeout_us) {
  auto impl = std::make_unique<Impl>();
  Result<std::shared_ptr<Connection>> outcome = make_error(Code::kInternal, "no outcome");
  bool finished = false;
  rpc::connect(impl->loop, target, me, timeout_us, [&](Result<std::shared_ptr<Connection>> result) {
    outcome = std::move(result);
    finished = true;
  });
  impl->run_until(finished, -1);
  if (!outcome) return std::move(outcome).error();
  impl->connection = std::move(*outcome);
  return std::unique_ptr<SyncClient>(new SyncClient(std::move(impl)));
}

const std::shared_ptr<Connection>& SyncClient::connection() { return impl_->connection; }
bool SyncClient::run_until(const bool& flag, int64_t timeout_us) {
  return impl_->run_until(flag, timeout_us);
}

}  // namespace rt::rpc
