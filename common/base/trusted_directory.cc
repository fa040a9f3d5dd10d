#include "common/base/trusted_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

namespace rt {
namespace {

namespace fs = std::filesystem;

// Returns the user who is not trusted and owns the file or directory, or a link at its path.
std::optional<unsigned> foreign_owner(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  if (!trusted_owner(info.st_uid)) return info.st_uid;
  if (S_ISLNK(info.st_mode) && ::stat(path.c_str(), &info) == 0 && !trusted_owner(info.st_uid))
    return info.st_uid;
  return std::nullopt;
}

Status check_owner(const std::string& path, const DirectoryUse& use, const char* danger) {
  const std::optional<unsigned> owner = foreign_owner(path);
  if (!owner) return {};
  return make_error(
      Code::kIo, fmt::format("cannot use {} for {}: it belongs to another user (uid {}), who could "
                             "{}; {}",
                             path, use.purpose, *owner, danger, use.elsewhere));
}

// Makes the directory with its mode, so that at no moment others may do more there. Directories
// above it get the usual mode. True: it was not there before.
Result<bool> make_directory(const std::string& path, const DirectoryUse& use) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) == 0) return false;
  if (errno != ENOENT) return cannot_use(path, use, errno);
  std::error_code error;
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  if (error) return cannot_use(path, use, error.value());
  if (::mkdir(path.c_str(), use.mode) == 0) {
    // The umask may have taken bits away.
    ::chmod(path.c_str(), use.mode);
    return true;
  }
  if (errno != EEXIST) return cannot_use(path, use, errno);
  return false;
}

}  // namespace

bool trusted_owner(unsigned uid) { return uid == ::geteuid() || uid == 0; }

Error cannot_use(const std::string& path, const DirectoryUse& use, int errnum) {
  const bool full = errnum == ENOSPC || errnum == EDQUOT;
  const char* remedy = full                ? "free some space there or "
                       : errnum == ENOTDIR ? ""
                                           : "make it writable or ";
  return make_error(full ? Code::kOutOfDisk : Code::kIo,
                    fmt::format("cannot use {} for {}: {}; {}{}", path, use.purpose,
                                std::strerror(errnum), remedy, use.elsewhere));
}

Status claim_directory(const std::string& named, const DirectoryUse& use) {
  std::string path = named;
  // With a slash at its end, the path of a link is that of the directory behind it.
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  RT_ASSIGN(bool made, make_directory(path, use));
  // Where root is mapped to another user, such as on NFS, what it makes belongs to that one.
  if (!made) RT_TRY(check_owner(path, use, "replace them"));
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return cannot_use(path, use, errno);
  if (!S_ISDIR(info.st_mode)) return cannot_use(path, use, ENOTDIR);
  const bool shared = (info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0;
  if (shared && ::chmod(path.c_str(), (info.st_mode & 07777) | S_ISVTX) != 0) {
    return make_error(
        Code::kIo, fmt::format("cannot use {} for {}: all users may remove files there; `chmod +t "
                               "{}` or {}",
                               path, use.purpose, path, use.elsewhere));
  }
  return {};
}

Status check_file_owner(const std::string& path, const DirectoryUse& use) {
  return check_owner(path, use, "read or replace what is in it");
}

}  // namespace rt
