// The cluster token: where it is found, checked and created.
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <set>

#include "common/base/environment.h"
#include "common/base/fd.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/base/token.h"
#include "common/base/trusted_directory.h"
#include "launch/node/internal.h"
#include "launch/node/launch.h"

namespace rt::launch {
namespace {

constexpr size_t kTokenBytes = 32;

Result<std::string> home_directory() {
  std::string home = environment("HOME");
  if (home.empty()) {
    if (const passwd* entry = getpwuid(geteuid())) home = entry->pw_dir;
  }
  if (home.empty())
    return make_error(Code::kNotFound,
                      "there is no home directory for the cluster token: set HOME, RAY_AUTH_TOKEN "
                      "or RAY_AUTH_TOKEN_PATH");
  return home;
}

// Returns true at the first call with this path, so that a process warns once about each file.
bool first_time(const std::string& path) {
  static Mutex mutex;
  static std::set<std::string> seen GUARDED_BY(mutex);
  MutexLock lock(mutex);
  return seen.insert(path).second;
}

// Checks who can write the file: that user chooses the token, and can thereby enter the cluster.
Status check_token_file(const std::string& path, int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) return errno_error("cannot read the token file " + path, errno);
  if (!S_ISREG(info.st_mode))
    return make_error(Code::kInvalid, fmt::format("the token file {} is no regular file: name one "
                                                  "that holds the token with RAY_AUTH_TOKEN_PATH",
                                                  path));
  if (!trusted_owner(info.st_uid)) {
    return make_error(
        Code::kInvalid,
        fmt::format("the token file {} belongs to another user (uid {}), who could replace it: "
                    "`chown` it, or name a file of yours with RAY_AUTH_TOKEN_PATH",
                    path, info.st_uid));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return make_error(
        Code::kInvalid,
        fmt::format("the token file {0} can be written by others (mode {1:04o}): `chmod 600 {0}`",
                    path, info.st_mode & 07777));
  }
  return {};
}

// Warns of other users who can read the file, because they can enter the cluster.
void warn_of_readers(const std::string& path, int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || (info.st_mode & (S_IRGRP | S_IROTH)) == 0 || !first_time(path))
    return;
  fmt::print(stderr,
             "Warning: the token file {0} can be read by others (mode {1:04o}): `chmod 600 {0}`.\n",
             path, info.st_mode & 07777);
}

Result<std::string> first_line_of(const std::string& path, const std::string& text) {
  std::string token(trimmed(std::string_view(text).substr(0, text.find('\n'))));
  if (token.empty())
    return make_error(
        Code::kInvalid,
        fmt::format("the token file {} is empty: remove it, and the next cluster makes a new one",
                    path));
  RT_TRY(check_token_bytes(token, "the token file " + path));
  return token;
}

// Returns the file or its directory, whichever is a dangling symbolic link; else an empty text.
std::string dangling_link(const std::string& path) {
  for (const std::string& part : {path, path.substr(0, path.rfind('/'))}) {
    struct stat info;
    if (lstat(part.c_str(), &info) == 0 && S_ISLNK(info.st_mode) && stat(part.c_str(), &info) != 0)
      return part;
  }
  return {};
}

// Uses the system's generator and not Rng, because a token must be unpredictable.
Result<std::string> random_hex() {
  std::string bytes(kTokenBytes, '\0');
  if (getentropy(bytes.data(), bytes.size()) != 0)
    return errno_error("cannot make a random token", errno);
  return to_hex(bytes);
}

// Writes the file under another name and links it into place: link() fails when the file exists,
// and a reader always finds a whole token.
Result<std::string> create_token(const std::string& path) {
  std::string directory = path.substr(0, path.rfind('/'));
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return make_error(
        Code::kIo, fmt::format("cannot make {} for the cluster token: {}; set HOME to a directory "
                               "of yours, or set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH",
                               directory, strerror(errno)));
  }
  RT_ASSIGN(std::string token, random_hex());
  std::string draft = fmt::format("{}.{}.{}", path, getpid(), token.substr(0, 8));
  Fd fd(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return errno_error("cannot make the token file " + path, errno);
  std::string line = token + "\n";
  bool written = write(fd.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
                 fsync(fd.get()) == 0;
  int write_error = errno;
  int linked = written ? link(draft.c_str(), path.c_str()) : -1;
  int link_error = errno;
  unlink(draft.c_str());
  if (!written) return errno_error("cannot write the token file " + path, write_error);
  if (linked == 0) return token;
  if (link_error != EEXIST) return errno_error("cannot make the token file " + path, link_error);
  // Another process has created the file first.
  auto text = read_file(path, 65536);
  if (!text) return errno_error("cannot read the token file " + path, errno);
  return first_line_of(path, *text);
}

}  // namespace

Result<std::string> auth_token(bool create) {
  std::string mode = environment("RAY_AUTH_MODE");
  if (mode == "disabled") return std::string();
  if (!mode.empty() && mode != "token")
    return make_error(Code::kInvalid,
                      fmt::format("RAY_AUTH_MODE is '{}': it takes token or disabled", mode));
  std::string given = environment("RAY_AUTH_TOKEN");
  std::string token(trimmed(given));
  if (!token.empty()) {
    RT_TRY(check_token_bytes(token, "RAY_AUTH_TOKEN"));
    return token;
  }
  std::string path = environment("RAY_AUTH_TOKEN_PATH");
  bool named = !path.empty();
  if (!named) {
    RT_ASSIGN(std::string home, home_directory());
    path = home + "/.ray/auth_token";
  }
  // Without O_NONBLOCK, opening a FIFO would block.
  if (Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)); fd.valid()) {
    RT_TRY(check_token_file(path, fd.get()));
    auto text = read_file(path, 65536);
    if (!text)
      return make_error(Code::kInvalid,
                        fmt::format("cannot read the token file {}: {}", path, strerror(errno)));
    auto token = first_line_of(path, *text);
    if (token) warn_of_readers(path, fd.get());
    return token;
  }
  if (errno != ENOENT && errno != ENOTDIR) {
    Error error = errno_error("cannot read the token file " + path, errno);
    if (named) error.code = Code::kInvalid;
    return error;
  }
  if (std::string link = dangling_link(path); !link.empty()) {
    return make_error(
        Code::kInvalid,
        fmt::format("the token file {} cannot be read: {} is a link to a file that does not exist; "
                    "remove the link, or set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH",
                    path, link));
  }
  if (named)
    return make_error(Code::kInvalid,
                      fmt::format("RAY_AUTH_TOKEN_PATH names {}, which does not exist", path));
  if (create) return create_token(path);
  return make_error(Code::kNotFound,
                    fmt::format("no cluster token: copy {} from the head's machine, or set "
                                "RAY_AUTH_TOKEN (`rayctl get-auth-token` prints it there)",
                                path));
}

std::string auth_token_source() {
  const std::string given = environment("RAY_AUTH_TOKEN");
  if (!trimmed(given).empty()) return "RAY_AUTH_TOKEN";
  const std::string path = environment("RAY_AUTH_TOKEN_PATH");
  return path.empty() ? "~/.ray/auth_token"
                      : fmt::format("the file {} (RAY_AUTH_TOKEN_PATH)", path);
}

Result<std::string> private_token() {
  auto kept = auth_token(/*create=*/true);
  if (kept || kept.error().code == Code::kInvalid) return kept;
  return random_hex();
}

}  // namespace rt::launch
