#include "daemons/node_manager/process/log_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/fd.h"

namespace rt::node {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

struct Parts {
  std::string directory, file;  // The directory of a plain name is empty.
};

// Splits a plain name, or DIRECTORY/FILE, both plain. Returns nothing for any other name.
std::optional<Parts> parts_of(const std::string& name) {
  const size_t slash = name.find('/');
  Parts parts;
  if (slash != std::string::npos) parts.directory = name.substr(0, slash);
  parts.file = slash == std::string::npos ? name : name.substr(slash + 1);
  if (!is_plain_name(parts.file) || (slash != std::string::npos && !is_plain_name(parts.directory)))
    return std::nullopt;
  return parts;
}

// Shortens a client's name for an error message.
std::string shown(const std::string& name) { return name.substr(0, 200); }

Result<int64_t> wanted_bytes(const proto::ReadLogFileRequest& request) {
  if (request.offset() < 0 || request.max_bytes() < 0)
    return make_error(Code::kInvalid, "offset and max_bytes must not be negative");
  return request.max_bytes() > 0 ? std::min(request.max_bytes(), kLogChunkBytes) : kLogChunkBytes;
}

}  // namespace

Result<proto::LogFilesReply> list_log_files(const std::string& directory, const std::string& glob) {
  std::unique_ptr<DIR, CloseDirectory> open(::opendir(directory.c_str()));
  if (!open) return errno_error("cannot list the log files of this node", errno);
  std::vector<proto::LogFile> found;
  while (const dirent* entry = ::readdir(open.get())) {
    std::string name = entry->d_name;
    if (!is_plain_name(name) || (!glob.empty() && ::fnmatch(glob.c_str(), name.c_str(), 0) != 0))
      continue;
    struct stat status{};
    if (::fstatat(::dirfd(open.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)))
      continue;
    if (found.size() >= kMostLogFiles)
      return make_error(
          Code::kResourceExhausted,
          fmt::format(
              "more than {} log files on this node match: give a narrower pattern than '{}'",
              kMostLogFiles, shown(glob)));
    found.emplace_back();
    found.back().set_name(std::move(name));
    found.back().set_size(status.st_size);
    found.back().set_is_directory(S_ISDIR(status.st_mode));
  }
  std::sort(found.begin(), found.end(),
            [](const proto::LogFile& a, const proto::LogFile& b) { return a.name() < b.name(); });
  proto::LogFilesReply reply;
  reply.mutable_files()->Add(found.begin(), found.end());
  return reply;
}

Result<proto::ReadLogFileReply> read_log_file(const std::string& directory,
                                              const proto::ReadLogFileRequest& request) {
  const auto parts = parts_of(request.name());
  if (!parts)
    return make_error(Code::kInvalid,
                      fmt::format("'{}' is not the name of a log file", shown(request.name())));
  RT_ASSIGN(int64_t wanted, wanted_bytes(request));
  Fd parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid()) return errno_error("cannot open the log files of this node", errno);
  if (!parts->directory.empty())
    parent = Fd(::openat(parent.get(), parts->directory.c_str(),
                         O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  Fd file(parent.valid() ? ::openat(parent.get(), parts->file.c_str(),
                                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                         : -1);
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return make_error(Code::kNotFound,
                      fmt::format("there is no log file '{}' on this node", shown(request.name())));
  }
  proto::ReadLogFileReply reply;
  reply.set_size(status.st_size);
  reply.set_inode(status.st_ino);
  int64_t most = std::max<int64_t>(0, std::min<int64_t>(wanted, status.st_size - request.offset()));
  std::string& data = *reply.mutable_data();
  data.resize(static_cast<size_t>(most));
  ssize_t n = most > 0 ? ::pread(file.get(), data.data(), data.size(), request.offset()) : 0;
  if (n < 0)
    return errno_error(fmt::format("cannot read the log file '{}'", shown(request.name())), errno);
  data.resize(static_cast<size_t>(n));
  return reply;
}

Result<proto::ReadLogFileReply> read_rotated_log(const RotatedLog& log,
                                                 const proto::ReadLogFileRequest& request) {
  RT_ASSIGN(int64_t wanted, wanted_bytes(request));
  RT_ASSIGN(auto chunk, log.read(request.offset(), wanted));
  proto::ReadLogFileReply reply;
  reply.set_size(log.size());
  reply.set_inode(log.id());
  // If a piece in the middle is missing, this is where the next one begins.
  reply.set_begins(chunk.offset > request.offset() ? chunk.offset : log.begins());
  reply.set_data(std::move(chunk.data));
  return reply;
}

}  // namespace rt::node
