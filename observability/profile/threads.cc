#include "observability/profile/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <string_view>

namespace rt::profile {
namespace {

std::string path_of(pid_t tid, const char* file) {
  return fmt::format("/proc/self/task/{}/{}", tid, file);
}
int open_file(pid_t tid, const char* file) {
  return open(path_of(tid, file).c_str(), O_RDONLY | O_CLOEXEC);
}

ssize_t read_start(int fd, char* buffer, size_t size) {
  ssize_t n = pread(fd, buffer, size - 1, 0);
  if (n >= 0) buffer[n] = '\0';
  return n;
}

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};

}  // namespace

ThreadFiles::ThreadFiles(pid_t tid)
    : tid_(tid), schedstat_(open_file(tid, "schedstat")), syscall_(open_file(tid, "syscall")) {}

ThreadFiles::Ran ThreadFiles::ran() {
  char text[128];
  if (!schedstat_.valid()) return Ran::kYes;
  ssize_t n = read_start(schedstat_.get(), text, sizeof(text));
  if (n < 0) return Ran::kGone;
  if (last_ == std::string_view(text, static_cast<size_t>(n)) && n > 0) return Ran::kNo;
  last_.assign(text, static_cast<size_t>(n));
  return Ran::kYes;
}

bool ThreadFiles::where(ThreadPosition* out) const {
  *out = {};
  // If the kernel has no such file, the thread is asked at every look.
  out->running = true;
  if (!syscall_.valid()) return true;
  char text[256];
  if (read_start(syscall_.get(), text, sizeof(text)) < 0) return false;
  std::string_view line(text);
  if (line.starts_with("running")) return true;
  // The kernel shows "NUMBER ARGUMENTS... SP PC", or "-1 SP PC" for a thread that sleeps outside of
  // a system call.
  out->running = false;
  out->call = std::strtoull(text, nullptr, 10);
  size_t last = line.rfind(' ');
  if (last == line.npos) return true;
  size_t before = line.rfind(' ', last - 1);
  out->pc = std::strtoull(text + last, nullptr, 16);
  if (before != line.npos) out->sp = std::strtoull(text + before, nullptr, 16);
  return true;
}

std::string ThreadFiles::name() const {
  Fd file(open_file(tid_, "comm"));
  char text[64] = "";
  if (!file.valid() || read_start(file.get(), text, sizeof(text)) < 0) return "";
  std::string name = text;
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

bool ThreadFiles::blocks(int signal) const {
  Fd file(open_file(tid_, "status"));
  char text[4096];
  if (!file.valid() || read_start(file.get(), text, sizeof(text)) < 0) return false;
  std::string_view status(text);
  size_t at = status.find("SigBlk:");
  return at != status.npos && (std::strtoull(text + at + 7, nullptr, 16) >> (signal - 1) & 1) != 0;
}

std::vector<pid_t> list_threads(pid_t self) {
  // The kernel ends a listing early when the thread that it stands at ends, which must not hide
  // those that come after it. Such a listing ends with a thread that is gone, or it is shorter than
  // the number of threads, which the links of the directory count. Threads may end at any rate, so
  // the number of tries is bounded.
  constexpr int kMostListings = 10;
  constexpr nlink_t kOtherLinks = 2;
  std::set<pid_t> tids;
  for (int i = 0; i < kMostListings; ++i) {
    std::unique_ptr<DIR, CloseDir> dir(opendir("/proc/self/task"));
    pid_t last = 0;
    nlink_t listed = 0;
    while (const dirent* entry = dir ? readdir(dir.get()) : nullptr) {
      pid_t tid = std::atoi(entry->d_name);
      if (tid <= 0) continue;
      last = tid;
      ++listed;
      if (tid != self) tids.insert(tid);
    }
    struct stat status{};
    if (!dir || fstat(dirfd(dir.get()), &status) != 0 ||
        (listed + kOtherLinks >= status.st_nlink && access(path_of(last, "").c_str(), F_OK) == 0))
      break;
  }
  return {tids.begin(), tids.end()};
}

}  // namespace rt::profile
