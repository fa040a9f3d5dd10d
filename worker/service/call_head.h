// Waiting for the head: the definition of Worker::Impl::call_head(), and what is built on it.
#pragma once

#include <memory>
#include <optional>

#include "worker/service/impl.h"

namespace rt::worker {

// Waits until `there()` holds. Fails when Ray is shut down, and with kCancelled when the language
// ends the wait because of a signal (Options::interrupted).
Status await_answer(Worker::Impl& impl, Worker::Impl::Lock& lock,
                    const std::function<bool()>& there);

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
  RT_TRY(await_answer(*this, lock, [&] { return answer->has_value(); }));
  return std::move(**answer);
}

// Asks a question, which changes nothing, and is asked again if the head ends while it has it.
template <class Method>
Result<typename rpc::StubMethod<Method>::ReplyType> ask_head(
    Worker::Impl& impl, Method method,
    const typename rpc::StubMethod<Method>::RequestType& request) {
  constexpr int kTries = 3;
  auto reply = impl.call_head(method, request);
  for (int tries = 1; !reply && reply.error().code == Code::kUnavailable && tries < kTries; ++tries)
    reply = impl.call_head(method, request);
  return reply;
}

}  // namespace rt::worker
