// Private to common/profile: makes another thread of this process store where it is.
//
// A thread gets a real-time signal that names a slot; its handler copies registers, the top of the
// stack and the language's frames into it. The handler stays installed once there was a profile,
// and the slots stay mapped: a signal may arrive late. It takes nothing from a slot that nobody
// waits for.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/base/status.h"
#include "common/profile/language.h"

namespace rt::profile {

inline constexpr size_t kStackBytes = 64 << 10;  // of a thread's stack, from its top
inline constexpr size_t kMaxLanguageFrames = 256;
inline constexpr size_t kSlots = 64;  // threads captured at once
// In the order DWARF numbers them; the program counter is last (aarch64: x0..x30, sp, pc).
#if defined(__x86_64__)
inline constexpr size_t kRegisters = 17;
#else
inline constexpr size_t kRegisters = 33;
#endif

struct Capture {
  enum State : uint32_t { kIdle, kArmed, kBusy, kFull };
  std::atomic<uint32_t> state;
  bool want_stack;
  bool only_sp_and_pc;  // taken from outside: the other registers are not known
  uint32_t language_frames;
  uint64_t registers[kRegisters];
  uint64_t sp, pc;
  uint64_t stack_bytes;
  LanguageFrame language[kMaxLanguageFrames];
  alignas(4096) std::byte stack[kStackBytes];  // what was at [sp, sp + stack_bytes)
};

class Captures {
 public:
  // Installs the handler; kUnsupported where there is none for this processor, kIo when the system
  // refuses.
  static Result<Captures*> get();
  static int signal_number();

  Capture* acquire(bool want_stack);  // null: all are in use
  // False: the thread has ended.
  bool request(Capture* capture, pid_t tid);
  // Of a sleeping thread that takes no signals.
  void fill_from_outside(Capture* capture, uint64_t sp, uint64_t pc);
  void release(Capture* capture);         // also one that was not filled
  void wait_for_any(int64_t timeout_us);  // until one more is full than at the last call
  void trim();                            // gives the slots' memory back

 private:
  Captures() = default;
};

}  // namespace rt::profile
