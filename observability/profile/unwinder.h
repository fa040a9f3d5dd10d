// Private to observability/profile: finds the native frames of captured stacks and their names. One
// thread uses it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "observability/profile/capture.h"
#include "observability/profile/module/unwind_api.h"

namespace rt::profile {

struct NativeName {
  std::string function, module, file;  // Without a symbol, the function is "[MODULE]".
  bool known = false;                  // Whether there is a symbol.
  int line = 0;
};

class Unwinder {
 public:
  // Loads libray_unwind.so into this process, where it stays. Returns kUnsupported if the module or
  // elfutils is missing; the message says where it was looked for.
  static Result<std::unique_ptr<Unwinder>> open();
  ~Unwinder();
  Unwinder(const Unwinder&) = delete;

  // Sets `pcs` to the program counters of the captured stack, innermost first.
  void unwind(const Capture& capture, std::vector<uint64_t>* pcs);
  // The name of the function at `pc`.
  NativeName name(uint64_t pc);

 private:
  Unwinder(const ray_unwind_api& api, void* self) : api_(api), self_(self) {}
  const ray_unwind_api& api_;
  void* self_;
};

}  // namespace rt::profile
