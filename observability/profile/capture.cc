#include "observability/profile/capture.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "observability/profile/memory.h"

namespace rt::profile {
namespace {

// Both are written before the handler is installed and never changed afterwards.
Capture* g_slots = nullptr;
int g_signal = 0;
std::atomic<uint32_t> g_filled{0};  // Counts slots filled by handlers; a futex.
uint32_t g_seen = 0;                // The value of g_filled that the sampler has seen.

const Language* g_language = nullptr;

void futex(int operation, uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, &g_filled, operation, value, timeout, nullptr, 0);
}

#if defined(__x86_64__)
void copy_registers(const ucontext_t& context, Capture* out) {
  constexpr int kOrder[kRegisters] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                      REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                      REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (size_t i = 0; i < kRegisters; ++i)
    out->registers[i] = static_cast<uint64_t>(context.uc_mcontext.gregs[kOrder[i]]);
  out->sp = out->registers[7];
  out->pc = out->registers[16];
}
#elif defined(__aarch64__)
void copy_registers(const ucontext_t& context, Capture* out) {
  for (size_t i = 0; i < 31; ++i) out->registers[i] = context.uc_mcontext.regs[i];
  out->sp = out->registers[31] = context.uc_mcontext.sp;
  out->pc = out->registers[32] = context.uc_mcontext.pc;
}
#else
void copy_registers(const ucontext_t&, Capture*) {}
#endif

// The slot that a signal names; null if the signal was not sent by Captures::request().
Capture* slot_of(const siginfo_t& info) {
  if (info.si_code != SI_QUEUE || info.si_pid != getpid()) return nullptr;
  auto* slot = static_cast<Capture*>(info.si_value.sival_ptr);
  return slot >= g_slots && slot < g_slots + kSlots ? slot : nullptr;
}

// Async-signal-safe: takes no locks, allocates nothing, and reads memory through read_memory().
void on_signal(int, siginfo_t* info, void* context) {
  const int saved = errno;
  Capture* slot = slot_of(*info);
  auto armed = static_cast<pid_t>(syscall(SYS_gettid));
  if (slot && slot->state.compare_exchange_strong(armed, Capture::kBusy)) {
    copy_registers(*static_cast<ucontext_t*>(context), slot);
    slot->language_frames =
        g_language ? static_cast<uint32_t>(g_language->capture(slot->language, kMaxLanguageFrames))
                   : 0;
    slot->stack_bytes =
        slot->want_stack ? read_memory_up_to(slot->sp, slot->stack, kStackBytes) : 0;
    slot->state.store(Capture::kFull);
    g_filled.fetch_add(1);
    futex(FUTEX_WAKE_PRIVATE, 1, nullptr);
  }
  errno = saved;
}

// Chooses the highest real-time signal that has no handler, because programs that use real-time
// signals usually begin with the lowest. Returns 0 if all have handlers.
int free_signal() {
  for (int number = SIGRTMAX - 1; number > SIGRTMIN; --number) {
    struct sigaction now{};
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) return number;
  }
  return 0;
}

Status install() {
#if !defined(__x86_64__) && !defined(__aarch64__)
  return make_error(
      Code::kUnsupported,
      "stacks are taken on x86-64 and aarch64 only; py-spy or gdb may do on this processor");
#endif
  void* memory = mmap(nullptr, sizeof(Capture) * kSlots, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return errno_error("no memory for stacks", errno);
  g_slots = static_cast<Capture*>(memory);
  g_signal = free_signal();
  if (g_signal == 0)
    return make_error(
        Code::kUnsupported,
        "this program has handlers for all real-time signals: none is left to take stacks with");
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  if (sigaction(g_signal, &action, nullptr) != 0)
    return errno_error("cannot take stacks by a signal", errno);
  return {};
}

}  // namespace

void set_language(const Language* language) { g_language = language; }
const Language* language() { return g_language; }

size_t read_memory_up_to(uint64_t address, std::byte* out, size_t bytes) noexcept {
  // The kernel stops at the first piece that it cannot read, so pieces end at page boundaries.
  constexpr size_t kPage = 4096, kPieces = 32;
  size_t done = 0;
  while (done < bytes) {
    iovec from[kPieces];
    size_t pieces = 0, wanted = 0;
    for (; pieces < kPieces && done + wanted < bytes; ++pieces) {
      uint64_t at = address + done + wanted;
      size_t piece = std::min(kPage - static_cast<size_t>(at % kPage), bytes - done - wanted);
      from[pieces] = {reinterpret_cast<void*>(at), piece};
      wanted += piece;
    }
    iovec to{out + done, wanted};
    ssize_t got = process_vm_readv(getpid(), &to, 1, from, pieces, 0);
    if (got > 0) done += static_cast<size_t>(got);
    if (got < static_cast<ssize_t>(wanted)) break;
  }
  return done;
}

Result<Captures*> Captures::get() {
  static Captures captures;
  static const Status installed = install();
  if (!installed) return installed.error();
  return &captures;
}

int Captures::signal_number() { return g_signal; }

Capture* Captures::acquire(pid_t tid, bool want_stack) {
  for (size_t i = 0; i < kSlots; ++i) {
    Capture& slot = g_slots[i];
    if (slot.state.load() != Capture::kIdle) continue;
    slot.want_stack = want_stack;
    slot.only_sp_and_pc = false;
    slot.language_frames = 0;
    slot.state.store(tid);
    return &slot;
  }
  return nullptr;
}

bool Captures::request(Capture* capture, pid_t tid) {
  siginfo_t info{};
  info.si_signo = g_signal;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = capture;
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, g_signal, &info) == 0;
}

void Captures::fill_from_outside(Capture* capture, uint64_t sp, uint64_t pc) {
  capture->only_sp_and_pc = true;
  capture->sp = sp;
  capture->pc = pc;
  capture->stack_bytes =
      capture->want_stack ? read_memory_up_to(sp, capture->stack, kStackBytes) : 0;
  capture->state.store(Capture::kFull);
}

void Captures::release(Capture* capture) {
  pid_t armed = capture->state.load();
  if (armed > 0 && capture->state.compare_exchange_strong(armed, Capture::kIdle)) return;
  // A handler is writing to the slot, which takes microseconds.
  while (capture->state.load() == Capture::kBusy) sched_yield();
  capture->state.store(Capture::kIdle);
}

void Captures::wait_for_any(int64_t timeout_us) {
  if (timeout_us > 0) {
    timespec timeout{timeout_us / 1'000'000, timeout_us % 1'000'000 * 1000};
    futex(FUTEX_WAIT_PRIVATE, g_seen, &timeout);
  }
  g_seen = g_filled.load();
}

void Captures::trim() {
  for (size_t i = 0; i < kSlots; ++i) {
    // Only the stack of the slot is given up. Its state stays kIdle, so late handlers ignore it.
    if (g_slots[i].state.load() == Capture::kIdle)
      madvise(g_slots[i].stack, kStackBytes, MADV_DONTNEED);
  }
}

}  // namespace rt::profile
