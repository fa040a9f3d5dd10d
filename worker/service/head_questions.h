// Questions to the head whose caller waits for the answer.
#pragma once

#include <memory>
#include <optional>

#include "common/rpc/client.h"
#include "worker/service/head_connection.h"
#include "worker/service/lock.h"
#include "worker/service/pump.h"
#include "worker/service/shared.h"
#include "worker/session_over.h"

namespace rt::worker {

class HeadQuestions {
 public:
  // All of them outlive this object.
  struct Parts {
    Shared& shared;
    Pump& pump;
    HeadConnection& head;
  };
  explicit HeadQuestions(const Parts& parts) : parts_(parts) {}

  template <class Method>
  using Answer = Result<typename rpc::StubMethod<Method>::ReplyType>;
  template <class Method>
  using Request = typename rpc::StubMethod<Method>::RequestType;

  // Asks the head and waits for the answer, as Pump::await_answer() does. A head that ends while it
  // has the request is not asked again, because nobody knows what it did.
  template <class Method>
  Answer<Method> call(Method method, const Request<Method>& request) EXCLUDES(worker_mutex) {
    WorkerLock lock(parts_.shared.mutex);
    if (parts_.shared.stopping) return session_over();
    auto answer = std::make_shared<std::optional<Answer<Method>>>();
    parts_.head.with(
        [answer, method, request](Result<std::shared_ptr<rpc::Connection>> connection) {
          if (!connection) {
            *answer = Answer<Method>(connection.error());
            return;
          }
          rpc::call(**connection, method, request, 60'000'000,
                    [answer](Answer<Method> reply) { *answer = std::move(reply); });
        });
    RT_TRY(parts_.pump.await_answer(lock, [&] { return answer->has_value(); }));
    return std::move(**answer);
  }

  // Asks a question, which changes nothing, and is asked again if the head ends while it has it.
  template <class Method>
  Answer<Method> ask(Method method, const Request<Method>& request) EXCLUDES(worker_mutex) {
    constexpr int kTries = 3;
    auto reply = call(method, request);
    for (int tries = 1; !reply && reply.error().code == Code::kUnavailable && tries < kTries;
         ++tries)
      reply = call(method, request);
    return reply;
  }

 private:
  const Parts parts_;
};

}  // namespace rt::worker
