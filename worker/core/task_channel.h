// A connection over which tasks are pushed, as the cores know it: by its address only. Those that
// carry out their decisions derive their connections from it, and cast back what they have told a
// core of.
#pragma once

namespace rt::worker {

class TaskChannel {
 protected:
  TaskChannel() = default;
  ~TaskChannel() = default;
};

}  // namespace rt::worker
