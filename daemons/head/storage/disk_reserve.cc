#include "daemons/head/storage/disk_reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <utility>

namespace rt::head {

DiskReserve::DiskReserve(std::string path, int64_t bytes) : path_(std::move(path)), bytes_(bytes) {
  struct stat found{};
  taken_ = ::stat(path_.c_str(), &found) == 0 && found.st_size == bytes_;
}

void DiskReserve::take() {
  if (taken_) return;
  // A cheap test first, because callers try before every write.
  struct statvfs disk{};
  if (::statvfs(path_.substr(0, path_.rfind('/') + 1).c_str(), &disk) == 0 &&
      disk.f_bavail * disk.f_frsize < static_cast<uint64_t>(bytes_))
    return;
  int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  taken_ = ::posix_fallocate(fd, 0, bytes_) == 0;
  ::close(fd);
  // A part of the reserve is of no use.
  if (!taken_) ::unlink(path_.c_str());
}

void DiskReserve::release() {
  ::unlink(path_.c_str());
  taken_ = false;
}

}  // namespace rt::head
