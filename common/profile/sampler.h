// One look at all threads of this process, or many: a profile. Blocks the calling thread, which is
// not looked at; one at a time in a process.
//
// A thread that runs, or that has moved since the last look, is asked by a signal for its stack
// (capture.h). One that sleeps where it slept keeps the stack it had: a sleeping call is
// interrupted once or twice, not at every look. Calls that are not restarted by the kernel (poll,
// epoll_wait, nanosleep, ...) return EINTR then, as after any signal.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/base/status.h"
#include "common/proto/profile.pb.h"

namespace rt::profile {

inline constexpr int64_t kMaxDurationMs = 3'600'000;
inline constexpr int kMaxHz = 1000;
inline constexpr size_t kMaxStacks = 20'000;  // different ones; others are counted as one

// kInvalid: bounds; kResourceExhausted: another one is under way here; kUnsupported: not on this
// processor. What else is absent is in the notes.
Result<proto::StackSamples> take_stacks(bool native);
// Ends early when `stop` becomes true.
Result<proto::StackSamples> take_profile(const proto::ProfileRequest& request,
                                         const std::atomic<bool>& stop);

}  // namespace rt::profile
