#include "worker/service/departure.h"

#include <signal.h>
#include <unistd.h>

#include "worker/service/impl.h"

namespace rt::worker {

void Departure::leave(bool graceful) {
  if (graceful) {
    leave_when_idle();
    leave_if_idle();
    return;
  }
  impl_.recorder.flush();
  impl_.loop->flush_all();
  // User code may never return.
  if (!impl_.execution.end_running()) _exit(0);
  end(0);
}

void Departure::leave_now_if_idle() {
  if (ending_ || !may_leave()) return;
  if (impl_.nodes.local()) {
    rpc::notify(*impl_.nodes.local(), &proto::NodeManagerService::Stub::Leaving, proto::Empty());
    impl_.loop->flush_all();
  }
  end(0);
}

bool Departure::may_leave() const {
  if (impl_.execution.is_busy() || !impl_.execution.queue().empty() ||
      !impl_.execution.frames().empty())
    return false;
  // The objects and tasks of an actor end with the actor.
  return impl_.execution.actor() || !impl_.is_needed();
}

void Departure::exit_actor(const std::string& why) {
  if (left_because_) return;
  left_because_ = why;
  impl_.execution.refuse_waiting_calls(why);
  proto::KillWorkerRequest request;
  request.set_worker_id(impl_.context.worker_id.binary());
  request.set_why(proto::ExitInfo::INTENTIONAL);
  request.set_message(why);
  request.set_graceful(true);
  if (const auto* actor = impl_.execution.actor()) request.set_actor_id(actor->spec().actor_id());
  // The node-manager answers with Exit; by then it knows the cause of the death.
  if (impl_.nodes.local())
    rpc::notify(*impl_.nodes.local(), &proto::NodeManagerService::Stub::KillWorker, request);
  impl_.loop->flush_all();
}

void Departure::end(int code) {
  ending_ = true;
  exit_code_ = code;
  impl_.loop->wake();
  impl_.pump.wake_followers();
}

void Departure::end_by_signal() {
  signalled_ = true;
  impl_.loop->wake();
}

int Departure::exit_code() const { return signalled_ ? -SIGTERM : exit_code_; }

}  // namespace rt::worker
