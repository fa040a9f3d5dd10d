#include "worker_output.h"

#include <stdio_ext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ext/stdio_sync_filebuf.h>
#include <iostream>

#include "common/base/mutex.h"

namespace ray::internal {
namespace {

std::atomic<const std::string*> g_marker{nullptr};
// The running task, and a number that changes with it.
std::atomic<uint64_t> g_task_number{0};
rt::Mutex g_task_mutex;
rt::TaskId g_task GUARDED_BY(g_task_mutex);
int g_attempt GUARDED_BY(g_task_mutex) = 0;

// One of the two streams. It is never freed, because it is written to until the process ends.
struct Stream {
  int fd;
  const std::string* written = nullptr;
  uint64_t task_number = 0;
  bool at_line_start = true;
};

bool write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    ssize_t n = ::write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

// Called by stdio with the stream locked.
ssize_t write_marked(void* cookie, const char* data, size_t size) {
  auto& stream = *static_cast<Stream*>(cookie);
  const std::string* marker = g_marker.load(std::memory_order_relaxed);
  if (marker && marker != stream.written && stream.at_line_start) {
    stream.written = marker;
    if (!write_all(stream.fd, marker->data(), marker->size())) return 0;
  }
  if (uint64_t number = g_task_number.load(std::memory_order_acquire);
      number != stream.task_number && stream.at_line_start) {
    stream.task_number = number;
    rt::MutexLock lock(g_task_mutex);
    std::string task_marker = ":task_id:" + g_task.hex() + " " + std::to_string(g_attempt) + "\n";
    if (!write_all(stream.fd, task_marker.data(), task_marker.size())) return 0;
  }
  if (!write_all(stream.fd, data, size)) return 0;
  if (size > 0) stream.at_line_start = data[size - 1] == '\n';
  return static_cast<ssize_t>(size);
}

std::FILE* marked(int fd) {
  std::FILE* file = fopencookie(new Stream{fd}, "w", {nullptr, write_marked, nullptr, nullptr});
  if (file) std::setvbuf(file, nullptr, _IOLBF, BUFSIZ);
  return file;
}

}  // namespace

void mark_output() {
  if (std::FILE* file = marked(STDOUT_FILENO)) {
    stdout = file;
    std::cout.rdbuf(new __gnu_cxx::stdio_sync_filebuf<char>(file));
  }
  if (std::FILE* file = marked(STDERR_FILENO)) {
    stderr = file;
    std::cerr.rdbuf(new __gnu_cxx::stdio_sync_filebuf<char>(file));
    std::clog.rdbuf(new __gnu_cxx::stdio_sync_filebuf<char>(file));
  }
}

void set_output_marker(const std::string* marker, const rt::TaskId& task, int attempt) {
  g_marker.store(marker, std::memory_order_relaxed);
  rt::MutexLock lock(g_task_mutex);
  g_task = task;
  g_attempt = attempt;
  g_task_number.fetch_add(1, std::memory_order_release);
}

void flush_output() {
  for (std::FILE* file : {stdout, stderr}) {
    if (__fpending(file) > 0) std::fflush(file);
  }
}

}  // namespace ray::internal
