// The definitions of Worker::Impl::call_head() and ask_head(), for the files that wait for the
// head.
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
  RT_TRY(await_answer(lock, [&] { return answer->has_value(); }));
  return std::move(**answer);
}

template <class Method>
Result<typename rpc::StubMethod<Method>::ReplyType> Worker::Impl::ask_head(
    Method method, const typename rpc::StubMethod<Method>::RequestType& request) {
  constexpr int kTries = 3;
  auto reply = call_head(method, request);
  for (int tries = 1; !reply && reply.error().code == Code::kUnavailable && tries < kTries; ++tries)
    reply = call_head(method, request);
  return reply;
}

}  // namespace rt::worker
