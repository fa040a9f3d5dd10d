// The hot path's messages: flat frames between an owner and a worker. Little-endian, unaligned, no
// padding.
//
// kTasks (owner -> worker): records, each a tag byte and
//   1 template: u32 id, u32 length, proto::TaskTemplate            - before the first task that
//   uses it on this connection 2 task:     u32 seq, u32 template, 24 bytes task id, u8 attempt, i64
//   wall clock in us when it was submitted, [repeated attempt of a generator: u32 items its owner
//   has,
//                 u32 of them taken,] u32 argument count, then per argument
//                 u8 0: u32 length, encoded value
//                 u8 1: 28 bytes object id, i64 size, u16 location count, each (28 bytes node id,
//                 u16 length, ip, i32 port),
//                       u16 length, proto::WorkerAddress of the owner
//                 u8 2: 28 bytes object id, u16 length, proto::WorkerAddress of the owner, who is
//                 asked for it: inline there would be too many
//   4 parent:   24 bytes id of the task that submitted those behind it (all 0xff: not known; so it
//   is at first) 5 recorded: nothing                                            - that the owner
//   records its submissions itself, for the timeline: from now on 3 gpus:     u16 count, then per
//   device u16 length, name         - of the tasks behind it, when the lease has some
// kReplies (worker -> owner): records
//   u32 seq, u8 TaskStatus (+ kLeaving: the worker ends after this reply, as max_calls asks), u32
//   duration in us, u32 return count, then per return
//                 u8 0: u32 length, encoded value         u8 1: i64 size (sealed in the store of
//                 the worker's node), u32 length, packed references
// kTakeBack (owner -> worker): u32 count: return up to so many unstarted tasks, newest first, as
// kNotStarted replies. kCancel (owner -> worker): u32 seq, u8 flags (1: end the process of a
// running task, 2: and the tasks it submitted). An unstarted task
//   comes back as kNotStarted, a running one ends by its own reply or with the process, a finished
//   one was answered already.
// kItems (worker -> owner): what running generators yield, each before the reply that ends it: u32
// seq, u32 number (from 0, one after the other),
//   then a return as in kReplies; its object id has the index number + 2.
// kItemsTaken (owner -> worker): u32 seq, u32 items taken (UINT32_MAX: all there will be). For
// generators with a limit on how far they may be ahead.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/base/status.h"

namespace rt::worker::wire {

inline constexpr uint32_t kTasks = 1, kReplies = 2, kTakeBack = 3, kCancel = 4, kItems = 5,
                          kItemsTaken = 6;
inline constexpr size_t kMaxInlinedBytes =
    10 << 20;  // of one task's arguments that are references to small values
inline constexpr size_t kMinValueBytes = 5;  // of an argument or a return
inline constexpr uint8_t kTemplateRecord = 1, kTaskRecord = 2, kGpuRecord = 3, kParentRecord = 4,
                         kRecordedRecord = 5;
inline constexpr uint8_t kLeaving = 0x80;
inline constexpr uint8_t kCancelForce = 1, kCancelRecursive = 2;

enum class TaskStatus : uint8_t { kOk = 0, kError = 1, kErrorRetry = 2, kNotStarted = 3 };

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  template <class T>
  void number(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void bytes(std::string_view b) { out_.append(b); }
  void bytes(Bytes b) { out_.append(reinterpret_cast<const char*>(b.data()), b.size()); }

 private:
  std::string& out_;
};

// Every get() checks the bounds; after a failure ok() is false and all further values are zero or
// empty.
class Reader {
 public:
  explicit Reader(Bytes bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}
  template <class T>
  T number() {
    T value{};
    if (static_cast<size_t>(end_ - at_) < sizeof(T)) return fail(), value;
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  Bytes take(size_t n) {
    if (static_cast<size_t>(end_ - at_) < n) return fail(), Bytes{};
    Bytes bytes{at_, n};
    at_ += n;
    return bytes;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return at_ == end_; }
  // A count of items that come next, each of at least `size` bytes: fails on one that is more than
  // there can be.
  uint32_t count(size_t size) {
    auto n = number<uint32_t>();
    return n <= static_cast<size_t>(end_ - at_) / size ? n : (fail(), 0);
  }

 private:
  void fail() {
    ok_ = false;
    at_ = end_;
  }
  const uint8_t* at_;
  const uint8_t* end_;
  bool ok_ = true;
};

}  // namespace rt::worker::wire
