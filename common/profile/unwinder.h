// Private to common/profile: native frames of captured stacks. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/profile/capture.h"
#include "common/profile/module/unwind_api.h"

namespace rt::profile {

struct NativeName {
  std::string function, module, file;  // without a symbol the function is "[MODULE]"
  bool known = false;
  int line = 0;
};

class Unwinder {
 public:
  // kUnsupported: the module or elfutils is missing, and where it was looked for. Loads the module
  // into this process, for good.
  static Result<std::unique_ptr<Unwinder>> open();
  ~Unwinder();
  Unwinder(const Unwinder&) = delete;

  // Innermost first.
  void unwind(const Capture& capture, std::vector<uint64_t>* pcs);
  NativeName name(uint64_t pc);

 private:
  Unwinder(const ray_unwind_api& api, void* self) : api_(api), self_(self) {}
  const ray_unwind_api& api_;
  void* self_;
};

}  // namespace rt::profile
