// Stands in for any of the three daemons: checks the descriptors it inherits, sends READY, and
// ends on SIGTERM, when its lifeline closes, or when its starter ends before it let the daemon go.
// Environment variables make it misbehave:
//   FAKE_FAIL=NAME     The daemon NAME prints a reason and exits with code 1 before it is ready.
//   FAKE_CRASH=NAME    The daemon NAME kills itself.
//   FAKE_STUBBORN=1    Every daemon ignores SIGTERM.
//   FAKE_SILENT=1      No daemon says that it is ready.
// It ends without the handlers of exit(): under the address sanitizer they look for leaks with the
// help of a process that shares all open files, and that one outlives a daemon which gets SIGTERM
// meanwhile, so that a test would still find the daemon's start going on.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

std::string name_of(const char* path) {
  std::string name(path);
  return name.substr(name.rfind('/') + 1);
}

bool is(const char* variable, const std::string& value) {
  const char* text = getenv(variable);
  return text && value == text;
}

void check_listening(const char* text) {
  int listening = 0;
  socklen_t size = sizeof(listening);
  if (getsockopt(atoi(text), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || !listening) {
    fprintf(stderr, "descriptor %s is not a listening socket\n", text);
    exit(3);
  }
}

void notify() {
  const char* name = getenv("NOTIFY_SOCKET");
  if (!name) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path + 1, name + 1, strlen(name) - 1);
  int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  sendto(fd, "STATUS=up\nREADY=1", 17, 0, reinterpret_cast<sockaddr*>(&address),
         static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + strlen(name)));
  close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = name_of(argv[0]), session, lifeline, starter;
  for (int i = 1; i + 1 < argc; ++i) {
    std::string flag = argv[i];
    if (flag == "--listen-fd" || flag == "--unix-listen-fd" || flag == "--metrics-listen-fd")
      check_listening(argv[i + 1]);
    if (flag == "--session-dir") session = argv[i + 1];
    if (flag == "--lifeline-fd") lifeline = argv[i + 1];
    if (flag == "--starter-fd") starter = argv[i + 1];
  }
  if (is("FAKE_FAIL", name)) {
    fprintf(stderr, "%s: the moon is in the wrong phase\n", name.c_str());
    return 1;
  }
  if (is("FAKE_CRASH", name)) raise(SIGKILL);
  if (is("FAKE_STUBBORN", "1")) signal(SIGTERM, SIG_IGN);
  {
    std::ofstream seen(session + "/logs/" + name + ".args");
    for (int i = 1; i < argc; ++i) seen << argv[i] << "\n";
    seen << "token=" << (getenv("RAY_AUTH_TOKEN") ? getenv("RAY_AUTH_TOKEN") : "none") << "\n";
    for (int fd = 0; fd < 256; ++fd) {
      char path[32], target[256];
      snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
      ssize_t n = readlink(path, target, sizeof(target) - 1);
      if (n > 0 && strncmp(target, "pipe:", 5) == 0) seen << "pipe " << fd << "\n";
    }
  }
  if (!is("FAKE_SILENT", "1")) notify();
  if (lifeline.empty()) {
    pollfd line{atoi(starter.c_str()), POLLIN, 0};
    if (!starter.empty() && poll(&line, 1, -1) == 1 && (line.revents & POLLIN) == 0) _exit(0);
    if (!starter.empty()) close(line.fd);
    for (;;) pause();
  }
  pollfd life{atoi(lifeline.c_str()), POLLIN, 0};
  poll(&life, 1, -1);
  _exit(0);
}
