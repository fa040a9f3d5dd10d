// Preloaded into a node-manager where nobody may lower a process's oom_score_adj (CAP_SYS_RESOURCE): reads $FAKE_OOM/daemon in its place, writes $FAKE_OOM/PID.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0600;
  va_end(arguments);
  char instead[4096];
  if (strcmp(path, "/proc/self/oom_score_adj") == 0) {
    int reads = (flags & O_ACCMODE) == O_RDONLY;
    reads ? snprintf(instead, sizeof instead, "%s/daemon", getenv("FAKE_OOM")) : snprintf(instead, sizeof instead, "%s/%d", getenv("FAKE_OOM"), getpid());
    path = instead;
    if (!reads) flags |= O_CREAT;
  }
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) __attribute__((alias("open")));
