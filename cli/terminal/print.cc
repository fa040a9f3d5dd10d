#include "cli/terminal/print.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace rt::cli {
namespace {

// The errno of the first failure on stdout. The stream itself only remembers that there was one.
int g_write_error = 0;

void remember(bool written) {
  if (!written && g_write_error == 0) g_write_error = errno != 0 ? errno : EIO;
}

}  // namespace

void write_output(std::string_view text) {
  errno = 0;
  remember(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

Status flush_output() {
  errno = 0;
  remember(std::fflush(stdout) == 0 && std::ferror(stdout) == 0);
  if (g_write_error == 0) return {};
  if (g_write_error == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  return make_error(Code::kIo, fmt::format("cannot write the output: {}", strerror(g_write_error)));
}

Status flush_to_reader() {
  pollfd reader{STDOUT_FILENO, 0, 0};
  if (::poll(&reader, 1, 0) == 1 && (reader.revents & (POLLERR | POLLHUP)) != 0 &&
      g_write_error == 0)
    g_write_error = EPIPE;
  return flush_output();
}

}  // namespace rt::cli
