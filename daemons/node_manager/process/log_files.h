// The log files of this node's session, for those who cannot see its disk. By plain names: nothing
// outside the directory can be named, and no link is followed.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/proto/node_manager.pb.h"
#include "daemons/node_manager/process/rotated_log.h"

namespace rt::node {

inline constexpr int64_t kLogChunkBytes = 1 << 20;  // of one answer
inline constexpr int kMostLogFiles = 20'000;        // likewise

// `glob`: a shell pattern of names, empty for all. kResourceExhausted: more match than one answer
// holds.
Result<proto::LogFilesReply> list_log_files(const std::string& directory, const std::string& glob);
// From `offset` on, at most kLogChunkBytes; empty at the end. kInvalid: no name of a file there can
// be this; kNotFound: there is none.
Result<proto::ReadLogFileReply> read_log_file(const std::string& directory,
                                              const proto::ReadLogFileRequest& request);

// The same of a log in pieces, as if it were one file: its size counts what was removed, `begins`
// says how much that is.
Result<proto::ReadLogFileReply> read_rotated_log(const RotatedLog& log,
                                                 const proto::ReadLogFileRequest& request);

}  // namespace rt::node
