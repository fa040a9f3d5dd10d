// Questions to the head whose caller waits for the answer.
#pragma once

#include <memory>
#include <optional>

#include "worker/service/impl.h"
#include "worker/service/lock.h"

namespace rt::worker {

// Waits until `there()` holds. Fails when Ray is shut down, and with kCancelled when the language
// ends the wait because of a signal (Options::interrupted).
Status await_answer(Worker::Impl& impl, WorkerLock& lock, const std::function<bool()>& there)
    REQUIRES(worker_mutex);

// Asks the head and waits for the answer. A head that ends while it has the request is not asked
// again, because nobody knows what it did.
template <class Method>
Result<typename rpc::StubMethod<Method>::ReplyType> call_head(
    Worker::Impl& impl, Method method,
    const typename rpc::StubMethod<Method>::RequestType& request) {
  using Reply = typename rpc::StubMethod<Method>::ReplyType;
  WorkerLock lock(impl.shared.mutex);
  if (impl.shared.stopping) return make_error(Code::kUnavailable, "Ray has been shut down");
  auto answer = std::make_shared<std::optional<Result<Reply>>>();
  impl.head.with([answer, method, request](Result<std::shared_ptr<rpc::Connection>> connection) {
    if (!connection) {
      *answer = Result<Reply>(connection.error());
      return;
    }
    rpc::call(**connection, method, request, 60'000'000,
              [answer](Result<Reply> reply) { *answer = std::move(reply); });
  });
  RT_TRY(await_answer(impl, lock, [&] { return answer->has_value(); }));
  return std::move(**answer);
}

// Asks a question, which changes nothing, and is asked again if the head ends while it has it.
template <class Method>
Result<typename rpc::StubMethod<Method>::ReplyType> ask_head(
    Worker::Impl& impl, Method method,
    const typename rpc::StubMethod<Method>::RequestType& request) {
  constexpr int kTries = 3;
  auto reply = call_head(impl, method, request);
  for (int tries = 1; !reply && reply.error().code == Code::kUnavailable && tries < kTries; ++tries)
    reply = call_head(impl, method, request);
  return reply;
}

}  // namespace rt::worker
