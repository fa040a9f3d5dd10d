// Private to common/launch: small file helpers its parts share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/environment.h"
#include "common/base/status.h"

namespace rt::launch {

// How long a daemon may take until it says that it is ready, and how long those that were started
// with one that failed have to end by themselves.
inline constexpr int64_t kReadyTimeoutUs = 30'000'000;
inline constexpr int64_t kCleanupGraceUs = 2'000'000;

// nullopt when it cannot be read. Bounded: these files are small by nature.
std::optional<std::string> read_file(const std::string& path, size_t max_bytes = 1 << 20);
// The same for files in directories where others may put files too: only a regular file of this
// user or root; else errno is EPERM.
std::optional<std::string> read_own_file(const std::string& path, size_t max_bytes = 1 << 20);
bool trusted_owner(unsigned uid);
// Complete or not there at all: written beside and renamed.
Status write_file_atomically(const std::string& path, std::string_view content, unsigned mode);
// The token of a cluster only this process and its children use: the user's, or, where an account
// has no place to keep one, one that is nowhere but in memory. kInvalid as from auth_token().
Result<std::string> private_token();
// Where a node known by `node_ip` listens.
std::string listening_host(const std::string& node_ip);
std::string_view trimmed(std::string_view text);

}  // namespace rt::launch
