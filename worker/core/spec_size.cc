#include "worker/core/spec_size.h"

#include <fmt/format.h>

namespace rt::worker {

Status check_spec_size(size_t bytes, std::string_view kind) {
  if (bytes <= kMaxSpecBytes) return {};
  return make_error(
      Code::kInvalid,
      fmt::format("the name and the options of {} have {} bytes, more than the {} that are "
                  "accepted: shorten them, and pass large data as arguments",
                  kind, bytes, kMaxSpecBytes));
}

}  // namespace rt::worker
