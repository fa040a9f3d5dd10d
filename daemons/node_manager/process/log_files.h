// Access to the log files of this node's session for clients that cannot read its disk. Files are
// named by plain names, or by DIRECTORY/FILE: no file outside can be named, and no symbolic link is
// followed.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/proto/node_manager.pb.h"
#include "daemons/node_manager/process/rotated_log.h"

namespace rt::node {

inline constexpr int64_t kLogChunkBytes = 1 << 20;  // most bytes in one reply
inline constexpr int kMostLogFiles = 20'000;        // most entries in one reply

// Lists the files and directories whose names match the shell pattern `glob` (empty: all), sorted
// by name. Returns kResourceExhausted if more than kMostLogFiles match.
Result<proto::LogFilesReply> list_log_files(const std::string& directory, const std::string& glob);
// Reads up to kLogChunkBytes from `offset` on; the data is empty at the end of the file. Returns
// kInvalid if the name is not such a name, kNotFound if there is no such regular file.
Result<proto::ReadLogFileReply> read_log_file(const std::string& directory,
                                              const proto::ReadLogFileRequest& request);

// Does the same for a rotated log, as if it were one file. The reply's `size` includes the bytes
// that rotation has removed, and `begins` says where the remaining ones begin.
Result<proto::ReadLogFileReply> read_rotated_log(const RotatedLog& log,
                                                 const proto::ReadLogFileRequest& request);

}  // namespace rt::node
