// Takes the stacks of all threads of this process once, or repeatedly as a profile. Blocks the
// calling thread, which is not sampled itself. Only one can be under way in a process.
//
// A thread that runs, or that has moved since the last look, is asked for its stack by a signal
// (capture.h). A thread that still sleeps in the same place keeps the stack it had, so a sleeping
// system call is interrupted once or twice, not at every look. Calls that the kernel does not
// restart (poll, epoll_wait, nanosleep, ...) return EINTR when that happens, as after any signal.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/base/status.h"
#include "common/proto/profile.pb.h"

namespace rt::profile {

inline constexpr int64_t kMaxDurationMs = 3'600'000;
inline constexpr int kMaxHz = 1000;
inline constexpr size_t kMaxStacks = 20'000;  // Further different stacks are counted as one.

// Looks once, with native frames if `native`. Returns kResourceExhausted if another one is under
// way in this process, and kUnsupported if no stacks can be taken here. Parts that are missing,
// such as native frames or threads that did not answer, are explained in the notes of the samples.
Result<proto::StackSamples> take_stacks(bool native);
// Looks request.hz() times a second. Also returns kInvalid if duration or rate are out of bounds.
// When `stop` becomes true, the profile ends early and returns what it has.
Result<proto::StackSamples> take_profile(const proto::ProfileRequest& request,
                                         const std::atomic<bool>& stop);

}  // namespace rt::profile
