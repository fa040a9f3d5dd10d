// The decisions of TaskLine and of Leaving, for the service, a test or the simulator to carry out.
#pragma once

#include <memory>

namespace rt::worker {

class LineTask;

class LineSink {
 public:
  virtual ~LineSink() = default;
  // All places of its arguments are known. Answered by TaskLine::arguments_fetched(), also before
  // this returns, unless they are given up.
  virtual void fetch_arguments(const std::shared_ptr<LineTask>& task) = 0;
  // The task gives up what was fetched, or its place in the store's line, in favour of others. Its
  // arguments may be fetched again.
  virtual void give_up_arguments(LineTask& task) = 0;
  // The task goes back to its owner as not started.
  virtual void return_task(LineTask& task) = 0;
  // The same for a call of an actor that has left: its caller is told so.
  virtual void refuse_call(LineTask& task) = 0;
  // From here on the process waits for other tasks, or works again.
  virtual void tell_blocked(bool blocked) = 0;
};

class LeaveSink {
 public:
  virtual ~LeaveSink() = default;
  // Whether replies are held that have not left.
  virtual bool holds_replies() const = 0;
  // Whether others need what this process owns. Asked only when it would leave otherwise.
  virtual bool is_needed() const = 0;
  // Nothing is left to do: the process tells its node-manager, and ends.
  virtual void leave() = 0;
  // It ends whatever runs or waits.
  virtual void leave_at_once() = 0;
  // The actor has left by its own wish. The node-manager is asked to end the process, so that it
  // knows the cause by then. Answered by Leaving::asked().
  virtual void ask_to_end() = 0;
};

}  // namespace rt::worker
