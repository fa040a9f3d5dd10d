// A zstd frame of known size.
#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace rt::events {

std::string compress(std::string_view raw);
// kInvalid: not one whole frame, or one that would unpack to more than 128 MiB, which nobody
// writes.
Result<std::string> decompress(std::string_view packed);
bool is_zstd_frame(std::string_view bytes);

}  // namespace rt::events
