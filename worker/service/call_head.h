// The definition of Worker::Impl::call_head(), for the files that ask the head and wait.
#pragma once

#include <memory>
#include <optional>

#include "worker/service/impl.h"

namespace rt::worker {

template <class Method>
Result<typename rpc::StubMethod<Method>::ReplyType> Worker::Impl::call_head(
    Method method, const typename rpc::StubMethod<Method>::RequestType& request) {
  using Reply = typename rpc::StubMethod<Method>::ReplyType;
  Lock lock(mutex);
  if (stopping) return make_error(Code::kUnavailable, "Ray has been shut down");
  auto answer = std::make_shared<std::optional<Result<Reply>>>();
  with_head([answer, method, request](Result<std::shared_ptr<rpc::Connection>> connection) {
    if (!connection) {
      *answer = Result<Reply>(connection.error());
      return;
    }
    rpc::call(**connection, method, request, 60'000'000,
              [answer](Result<Reply> reply) { *answer = std::move(reply); });
  });
  while (!answer->has_value()) {
    wait_until(lock, -1, [&] { return answer->has_value() || stopping; });
    if (stopping) return make_error(Code::kUnavailable, "Ray has been shut down");
  }
  return std::move(**answer);
}

}  // namespace rt::worker
