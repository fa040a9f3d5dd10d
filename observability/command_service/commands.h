// The commands that a process offers to those who operate the cluster, by name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/base/mutex.h"
#include "common/base/status.h"

namespace rt::command {

// Takes and returns JSON. It is called in a thread of its own, several times at once if there are
// several requests, and may take any time. Its error is kInvalid if the input is wrong, otherwise
// kInternal.
using Command = std::function<Result<std::string>(const std::string& json)>;

// All methods may be called from any thread.
class Commands {
 public:
  // Offers a command under this name instead of the one that had it, if there was one. Calls that
  // have begun go on. Null removes the name.
  void set(const std::string& name, std::shared_ptr<const Command> command);
  // Returns null if there is none of this name.
  std::shared_ptr<const Command> find(const std::string& name) const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Command>> commands_ GUARDED_BY(mutex_);
};

}  // namespace rt::command
