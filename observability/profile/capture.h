// Private to observability/profile: makes other threads of this process store their current stacks.
//
// The sampler sends a thread a real-time signal that names a slot. The signal's handler copies the
// registers, the top of the stack and the language's frames into that slot. The handler stays
// installed and the slots stay mapped after the first profile, because a signal may arrive late. A
// late signal finds its slot idle, or armed for another thread, and does nothing.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/base/status.h"
#include "observability/profile/language.h"

namespace rt::profile {

inline constexpr size_t kStackBytes = 64 << 10;  // At most so much of a thread's stack is copied.
inline constexpr size_t kMaxLanguageFrames = 256;
inline constexpr size_t kSlots = 64;  // So many threads can be captured at once.
// Registers are stored in the order in which DWARF numbers them, with the program counter last
// (aarch64: x0..x30, sp, pc).
#if defined(__x86_64__)
inline constexpr size_t kRegisters = 17;
#else
inline constexpr size_t kRegisters = 33;
#endif

// A slot. `state` says who owns the other fields: the sampler while it is kIdle or kFull, the
// handler of the captured thread while it is kBusy. Any other value is the number of a thread: the
// slot is armed for that one. The sampler moves kIdle to a number, the handler the number to kBusy
// and then kFull.
struct Capture {
  enum State : pid_t { kIdle = 0, kBusy = -1, kFull = -2 };
  std::atomic<pid_t> state;
  bool want_stack;
  bool only_sp_and_pc;  // Filled by fill_from_outside(): the other registers are not known.
  uint32_t language_frames;
  uint64_t registers[kRegisters];
  uint64_t sp, pc;
  uint64_t stack_bytes;
  LanguageFrame language[kMaxLanguageFrames];
  alignas(4096) std::byte stack[kStackBytes];  // The memory at [sp, sp + stack_bytes).
};

// The slots and the signal of this process. Only one thread may use it at a time: the sampler.
class Captures {
 public:
  // Installs the handler at the first call. Returns kUnsupported if this processor is not supported
  // or no real-time signal is free, and kIo if the system refuses.
  static Result<Captures*> get();
  static int signal_number();

  // Takes a slot and arms it for a thread; null if all are in use.
  Capture* acquire(pid_t tid, bool want_stack);
  // Sends the signal to that thread. Returns false if that fails, usually because the thread has
  // ended.
  bool request(Capture* capture, pid_t tid);
  // Fills the slot for a sleeping thread that blocks the signal, from what the kernel tells of it.
  void fill_from_outside(Capture* capture, uint64_t sp, uint64_t pc);
  // Frees a slot, filled or not. Waits for a handler that is writing to it.
  void release(Capture* capture);
  // Waits until a slot has been filled since the last call, or the timeout has passed.
  void wait_for_any(int64_t timeout_us);
  // Returns the memory of idle slots to the system.
  void trim();

 private:
  Captures() = default;
};

}  // namespace rt::profile
