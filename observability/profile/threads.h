// Private to observability/profile: the threads of this process, and which of them have moved since
// the last look. The files of /proc that tell this stay open during a profile.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/fd.h"

namespace rt::profile {

// The position of a thread according to the kernel.
struct ThreadPosition {
  bool running = false;  // Whether it is on a processor, or ready to run.
  // The number of the system call, the stack pointer and the program counter of a sleeping thread.
  uint64_t call = 0, sp = 0, pc = 0;
  bool operator==(const ThreadPosition&) const = default;
};

class ThreadFiles {
 public:
  explicit ThreadFiles(pid_t tid);
  enum class Ran { kNo, kYes, kGone };
  // Whether the thread has run since the last call. The first call returns kYes, as does every call
  // if the kernel does not provide schedstat. kGone means that the thread has ended.
  Ran ran();
  // Returns false if the thread has ended. Without help of the kernel it reports "running".
  bool where(ThreadPosition* out) const;
  std::string name() const;
  // Whether the thread's signal mask blocks `signal`.
  bool blocks(int signal) const;

 private:
  pid_t tid_;
  Fd schedstat_, syscall_;
  std::string last_;
};

// The ids of all threads of this process but `self`.
std::vector<pid_t> list_threads(pid_t self);

}  // namespace rt::profile
