#include "common/base/small_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/fd.h"

namespace rt {

Result<std::string> read_small_file(const std::string& path, size_t max_bytes) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return make_error(Code::kIo, std::strerror(errno));
  std::string text;
  for (char piece[4096];;) {
    const ssize_t n = ::read(fd.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return make_error(Code::kIo, std::strerror(errno));
    if (n == 0) return text;
    text.append(piece, static_cast<size_t>(n));
    if (text.size() > max_bytes)
      return make_error(
          Code::kIo,
          fmt::format("it has more than the {} bytes that are read: shorten it or name another one",
                      max_bytes));
  }
}

}  // namespace rt
