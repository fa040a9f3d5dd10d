// What ps shows of this process: the memory of its arguments, overwritten. Cheap enough for every
// task (no system call).
#pragma once

#include <cstddef>
#include <string_view>

namespace rt::python {

// One per process, used by one thread. Where the arguments' memory cannot be found, set() does
// nothing.
class ProcessTitle {
 public:
  ProcessTitle();
  // Cut to the room the arguments took.
  void set(std::string_view title);

 private:
  char* begin_ = nullptr;
  size_t room_ = 0;  // a NUL stays behind it, or the kernel reads on in the environment
  size_t used_ = 0;
};

// What the calling thread, and each that it starts from here on and that gets no name of its own,
// is called in stacks, by top and by gdb. Cut to the kernel's 15 bytes.
void name_thread(std::string_view name);

}  // namespace rt::python
