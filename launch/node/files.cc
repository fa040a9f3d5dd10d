// Small files: read with a bound and written atomically. read_own_file() reads none that another
// user could have written.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/fd.h"
#include "common/base/rng.h"
#include "common/base/trusted_directory.h"
#include "launch/node/internal.h"

namespace rt::launch {
namespace {

std::optional<std::string> read_all(int fd, size_t max_bytes) {
  std::string text;
  char buffer[16384];
  while (text.size() < max_bytes) {
    ssize_t n = read(fd, buffer, std::min(sizeof(buffer), max_bytes - text.size()));
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

}  // namespace

std::optional<std::string> read_file(const std::string& path, size_t max_bytes) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  return read_all(fd.get(), max_bytes);
}

std::optional<std::string> read_end_of_file(const std::string& path, size_t max_bytes) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return std::nullopt;
  const auto most = static_cast<off_t>(max_bytes);
  if (info.st_size > most && lseek(fd.get(), info.st_size - most, SEEK_SET) < 0)
    return std::nullopt;
  return read_all(fd.get(), max_bytes);
}

std::optional<std::string> read_own_file(const std::string& path, size_t max_bytes) {
  // Without O_NONBLOCK, opening a FIFO that somebody has put there would block.
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) {
    // The path is a link.
    if (errno == ELOOP) errno = EPERM;
    return std::nullopt;
  }
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return std::nullopt;
  if (!S_ISREG(info.st_mode) || !trusted_owner(info.st_uid)) {
    errno = EPERM;
    return std::nullopt;
  }
  return read_all(fd.get(), max_bytes);
}

Status write_file_atomically(const std::string& path, std::string_view content, unsigned mode) {
  // The name is random, so that nobody can guess it and take it first.
  std::string draft = fmt::format("{}.{}.{:016x}", path, getpid(), Rng::from_system().next());
  Fd fd(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd.valid()) return errno_error("cannot write " + path, errno);
  if (write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      rename(draft.c_str(), path.c_str()) != 0) {
    int error = errno;
    unlink(draft.c_str());
    return errno_error("cannot write " + path, error);
  }
  return {};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

}  // namespace rt::launch
