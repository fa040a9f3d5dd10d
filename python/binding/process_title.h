// The title of this process in ps: overwrites the memory of the process's arguments. It needs no
// system call, so it is cheap enough for every task.
#pragma once

#include <cstddef>
#include <string_view>

namespace rt::python {

// One per process, used by one thread. set() does nothing where the memory of the arguments could
// not be found.
class ProcessTitle {
 public:
  ProcessTitle();
  // Cuts the title to the room that the arguments took.
  void set(std::string_view title);

 private:
  char* begin_ = nullptr;
  // A NUL stays behind the room, because the kernel would otherwise read on into the environment.
  size_t room_ = 0;
  size_t used_ = 0;
};

// Names the calling thread as shown in stacks, by top and by gdb, as well as threads that it
// starts later and that get no name of their own. The name is cut to the kernel's 15 bytes.
void name_thread(std::string_view name);

}  // namespace rt::python
