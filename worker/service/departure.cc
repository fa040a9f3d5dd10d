#include "worker/service/departure.h"

#include <signal.h>
#include <unistd.h>

namespace rt::worker {

void Departure::leave() {
  hooks_.tell_leaving();
  stop(0);
}

void Departure::leave_at_once() {
  hooks_.flush();
  // User code may never return.
  if (!hooks_.interrupt()) _exit(0);
  stop(0);
}

void Departure::exit_actor(const std::string& why) {
  if (leaving_.has_left()) return;
  why_ = why;
  hooks_.refuse_with(why);
  leaving_.exit_actor();
}

void Departure::end(int code) {
  leaving_.end();
  stop(code);
}

void Departure::stop(int code) {
  exit_code_ = code;
  hooks_.wake();
}

void Departure::end_by_signal() {
  signalled_ = true;
  waker_();
}

int Departure::exit_code() const { return signalled_ ? -SIGTERM : exit_code_; }

}  // namespace rt::worker
