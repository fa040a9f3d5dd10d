#include "cli/terminal/screen.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "cli/terminal/ending_signals.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/terminal/style.h"
#include "common/base/clock.h"
#include "common/base/fd.h"

namespace rt::cli {
namespace {

constexpr int64_t kShortestUs = 100'000, kLongestUs = 3600'000'000;
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l", kLeave[] = "\x1b[?25h\x1b[?1049l";

// Sets up the terminal while pages are shown: the alternate screen, no cursor, keys without Enter.
// The destructor restores it. Signals that would end the program are blocked meanwhile and make
// wait() return false, so that the destructor runs.
class Screen {
 public:
  Screen() : terminal_(isatty(STDOUT_FILENO) != 0) {
    sigset_t set = ending_signals();
    sigaddset(&set, SIGWINCH);
    sigprocmask(SIG_BLOCK, &set, &before_);
    signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!terminal_) return;
    keys_ = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &usual_) == 0;
    if (keys_) {
      termios raw = usual_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    print("{}", kEnter);
  }
  ~Screen() {
    if (terminal_) print("{}", kLeave);
    std::fflush(stdout);
    if (keys_) tcsetattr(STDIN_FILENO, TCSANOW, &usual_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  Status show(const std::string& page) {
    if (!terminal_) {
      print("{}\n", page);
      return flush_output();
    }
    winsize size{};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    constexpr size_t kRows = 24, kColumns = 80;
    std::string text = clipped(page, size.ws_row > 0 ? size.ws_row : kRows,
                               size.ws_col > 0 ? size.ws_col : kColumns);
    // The new page overwrites the old one line by line; clearing the screen first would flicker.
    std::string out = "\x1b[H";
    for (char c : text) out += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
    print("{}\x1b[K\x1b[J", out);
    return flush_output();
  }

  // Waits until the next page is due. Returns early on space, Enter or a resized window; returns
  // false when the user asks to quit (q, a signal, or the end of stdin).
  bool wait(int64_t us) {
    const int64_t deadline_us = steady_now_us() + us;
    for (int64_t left_us = us; left_us > 0; left_us = deadline_us - steady_now_us()) {
      pollfd polled[2] = {{signals_.get(), POLLIN, 0}, {keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
      poll(polled, 2, static_cast<int>(left_us / 1000 + 1));
      signalfd_siginfo info;
      while (read(signals_.get(), &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGWINCH) return false;
        // The window was resized: draw again at once.
        left_us = 0;
      }
      if (left_us == 0) return true;
      char key = 0;
      if ((polled[1].revents & (POLLIN | POLLHUP)) != 0 &&
          (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q'))
        return false;
      if (key == ' ' || key == '\n') return true;
    }
    return true;
  }

 private:
  const bool terminal_;
  bool keys_ = false;
  termios usual_{};
  sigset_t before_{};
  Fd signals_;
};

}  // namespace

void declare_refresh(CommandLine& line) {
  line.option("interval", "SECONDS", "between two pages (default 2)")
      .option("iterations,n", "N", "how many pages to show (default: until q or Ctrl-C)");
}

Result<Refresh> refresh_of(const CommandLine& line) {
  Refresh how;
  if (line.has("interval")) {
    const std::string text = line.get("interval");
    double seconds = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    bool number = error == std::errc() && end == text.data() + text.size();
    if (!number || !(seconds * 1e6 >= kShortestUs && seconds * 1e6 <= kLongestUs)) {
      return make_error(
          Code::kInvalid,
          fmt::format("--interval is '{}': it takes seconds, from 0.1 to 3600", excerpt(text)));
    }
    how.interval_us = static_cast<int64_t>(seconds * 1e6);
  }
  RT_ASSIGN(auto pages, line.whole("iterations", 1, 1'000'000'000));
  how.pages = pages.value_or(-1);
  return how;
}

Status refresh(const Refresh& how, const std::function<Result<std::string>()>& page) {
  RT_ASSIGN(std::string good, page());
  Screen screen;
  RT_TRY(screen.show(good));
  for (int64_t shown = 1; how.pages < 0 || shown < how.pages; ++shown) {
    if (!screen.wait(how.interval_us)) return {};
    auto next = page();
    if (next) good = std::move(*next);
    RT_TRY(screen.show(next ? good
                            : painted("Cannot refresh, showing the last answer: ", Ink::kBad) +
                                  next.error().message + "\n" + good));
  }
  return {};
}

std::string clipped(const std::string& page, size_t rows, size_t columns) {
  std::string out;
  size_t row = 0;
  for (size_t at = 0; at < page.size();) {
    size_t end = std::min(page.find('\n', at), page.size());
    if (++row == rows && end + 1 < page.size()) {
      auto more = std::count(page.begin() + static_cast<std::ptrdiff_t>(at), page.end(), '\n') +
                  (page.back() != '\n');
      return out + fmt::format("... {} more lines", more);
    }
    size_t column = 0;
    bool escaped = false;
    for (; at < end; ++at) {
      if (page[at] == '\x1b') {
        size_t last = page.find('m', at);
        if (last >= end) break;
        escaped = true;
        out.append(page, at, last - at + 1);
        at = last;
        continue;
      }
      bool continues = (static_cast<unsigned char>(page[at]) & 0xC0) == 0x80;
      if (!continues && ++column > columns) break;
      out += page[at];
    }
    if (at < end && escaped) out += "\x1b[0m";
    at = end + 1;
    if (at < page.size()) out += '\n';
  }
  return out;
}

}  // namespace rt::cli
