// Compresses and decompresses single zstd frames of known size.
#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace rt::events {

std::string compress(std::string_view raw);
// Returns kInvalid if `packed` is not one whole frame, or would unpack to more than 128 MiB; no
// writer produces such frames.
Result<std::string> decompress(std::string_view packed);

}  // namespace rt::events
