#include "worker/service/departure.h"

#include <signal.h>
#include <unistd.h>

namespace rt::worker {

void Departure::leave(bool graceful) {
  if (graceful) {
    leave_when_idle();
    leave_if_idle();
    return;
  }
  hooks_.flush();
  // User code may never return.
  if (!hooks_.interrupt()) _exit(0);
  end(0);
}

void Departure::leave_now_if_idle() {
  if (ending_ || !may_leave()) return;
  hooks_.tell_leaving();
  end(0);
}

bool Departure::may_leave() const { return !hooks_.has_work() && !hooks_.is_needed(); }

void Departure::exit_actor(const std::string& why) {
  if (left_because_) return;
  left_because_ = why;
  hooks_.refuse_calls(why);
  hooks_.ask_to_end(why);
}

void Departure::end(int code) {
  ending_ = true;
  exit_code_ = code;
  hooks_.wake();
}

void Departure::end_by_signal() {
  signalled_ = true;
  waker_();
}

int Departure::exit_code() const { return signalled_ ? -SIGTERM : exit_code_; }

}  // namespace rt::worker
