// Private to launch/node: helpers that its parts share.
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

// Reads a small file, at most `max_bytes` of it. nullopt, with errno set, when it cannot be read.
std::optional<std::string> read_file(const std::string& path, size_t max_bytes = 1 << 20);
// The same for files in directories where other users may put files, too. Anything but a regular
// file of this user or root is nullopt with errno EPERM.
std::optional<std::string> read_own_file(const std::string& path, size_t max_bytes = 1 << 20);
// Writes a file under another name and renames it, so that readers find it complete or not at all.
Status write_file_atomically(const std::string& path, std::string_view content, unsigned mode);
// The token of a cluster that only this process and its children use: the user's token or, where an
// account has no place to keep one, one that exists in memory only. kInvalid as from auth_token().
Result<std::string> private_token();
// The host on which a node that others know by `node_ip` listens: that address if it is a loopback
// address, else every interface.
std::string listening_host(const std::string& node_ip);
// `text` without blanks and line ends around it.
std::string_view trimmed(std::string_view text);

}  // namespace rt::launch
