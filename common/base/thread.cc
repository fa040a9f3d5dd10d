#include "common/base/thread.h"

#include <fmt/core.h>

#include <system_error>

namespace rt {

Result<std::thread> start_thread(std::function<void()> work) {
  const SignalsBlocked blocked;
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    // The conversion is explicit, because a thread, too, could be made of anything that is
    // callable.
    return {boost::system::in_place_error,
            make_error(Code::kResourceExhausted,
                       fmt::format("no thread can be started in this process: {}", error.what()))};
  }
}

}  // namespace rt
