// Private to common/profile: the threads of this process, and which of them moved since the last
// look. Files of /proc stay open during a profile.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/fd.h"

namespace rt::profile {

// Where a thread is, as the kernel tells.
struct Whereabouts {
  bool running = false;               // on a processor, or ready for one
  uint64_t call = 0, sp = 0, pc = 0;  // of a sleeping one
  bool operator==(const Whereabouts&) const = default;
};

class ThreadFiles {
 public:
  explicit ThreadFiles(pid_t tid);
  enum class Ran { kNo, kYes, kGone };
  // Since the last call; kYes at the first, and where the kernel does not tell.
  Ran ran();
  // False: gone.
  bool where(Whereabouts* out) const;
  std::string name() const;
  bool blocks(int signal) const;

 private:
  pid_t tid_;
  Fd schedstat_, syscall_;
  std::string last_;
};

// All but `self`.
std::vector<pid_t> list_threads(pid_t self);

}  // namespace rt::profile
