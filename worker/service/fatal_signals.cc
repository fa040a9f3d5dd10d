#include "worker/service/fatal_signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <iterator>
#include <utility>

namespace rt::worker {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

std::atomic<const std::function<void()>*> g_last{nullptr};
pid_t g_pid = 0;
struct sigaction g_before[std::size(kSignals)];

void on_fault(int number, siginfo_t* info, void*) {
  const int kept_errno = errno;
  // Taken out, so that a fault in the handler is not handled again.
  const std::function<void()>* last = g_last.exchange(nullptr);
  if (last && getpid() == g_pid) (*last)();
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (kSignals[i] == number) sigaction(number, &g_before[i], nullptr);
  }
  errno = kept_errno;
  // A faulting instruction is executed again when the handler returns; a signal that was sent must
  // be raised again.
  if (info->si_code <= 0) raise(number);
}

}  // namespace

FatalSignals::FatalSignals(std::function<void()> last) : last_(std::move(last)) {
  const std::function<void()>* none = nullptr;
  if (!g_last.compare_exchange_strong(none, &last_)) return;
  g_pid = getpid();
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &g_before[i]);
}

FatalSignals::~FatalSignals() {
  const std::function<void()>* mine = &last_;
  if (!g_last.compare_exchange_strong(mine, nullptr)) return;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction now{};
    sigaction(kSignals[i], nullptr, &now);
    // Otherwise the program has installed a handler of its own on top.
    if (now.sa_sigaction == on_fault) sigaction(kSignals[i], &g_before[i], nullptr);
  }
}

}  // namespace rt::worker
