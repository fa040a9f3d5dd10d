#include "worker/core/leaving.h"

namespace rt::worker {

void Leaving::asked(bool graceful) {
  if (graceful) {
    when_idle_ = true;
    return leave_if_idle();
  }
  ends_ = true;
  sink_.leave_at_once();
}

void Leaving::exit_actor() {
  if (left_) return;
  left_ = true;
  line_.refuse_calls();
  sink_.ask_to_end();
}

void Leaving::leave_if_idle() {
  if (ends_ || !may_leave()) return;
  ends_ = true;
  sink_.leave();
}

bool Leaving::may_leave() const {
  if (line_.running() > 0 || !line_.empty() || sink_.holds_replies()) return false;
  // The objects and tasks of an actor end with the actor.
  return line_.is_actor() || !sink_.is_needed();
}

}  // namespace rt::worker
