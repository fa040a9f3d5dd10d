// The hot path's messages: flat frames between an owner and a worker. Little-endian, unaligned,
// without padding.
//
// kTasks (owner -> worker): records, each a tag byte and its fields.
//   1 template: u32 id, u32 length, proto::TaskTemplate
//       Precedes the first task on this connection that uses it.
//   2 task: u32 seq, u32 template, 24 bytes task id, u8 attempt, i64 submission time (wall clock,
//       us), [u32 items the owner has, u32 of them taken,] u32 argument count, arguments
//       The fields in brackets are there in repeated attempts of generators only. An argument is
//       a ValuePlace and what follows it:
//         kInline: u32 length, encoded value
//         kInStore: 28 bytes object id, i64 size, u16 location count, per location (28 bytes node
//         id,
//               u16 length, ip, i32 port), u16 length, proto::WorkerAddress of the owner
//         kAtOwner: 28 bytes object id, u16 length, proto::WorkerAddress of the owner
//       kAtOwner is a small value beyond kMaxInlinedBytes; the worker asks the owner for it.
//   3 gpus: u16 count, then per device u16 length, name
//       The GPUs of the tasks that follow; there are none before the first such record.
//   4 parent: 24 bytes task id
//       The task that submitted those that follow; all 0xff, as in the beginning: not known.
//   5 recorded: no fields
//       From here on the owner records its submissions itself, for the timeline.
// kReplies (worker -> owner): records
//   u32 seq, u8 TaskStatus, u32 duration in us, u32 return count, returns
//       A call that an actor refuses because it leaves is kNotStarted and returns the error.
//       The status has the bit kLeaving when the worker takes no more tasks, as max_calls asks.
//       A return is a ValuePlace and
//         kInline: u32 length, encoded value
//         kInStore: i64 size, u32 length, packed references
//       kInStore is sealed in the store of the worker's node.
// kTakeBack (owner -> worker): u32 count
//       The worker returns up to so many unstarted tasks, newest first, as kNotStarted replies.
// kCancel (owner -> worker): u32 seq, u8 flags (kCancelForce: end the process of a running task,
//   kCancelRecursive: also cancel the tasks it submitted)
//       An unstarted task comes back as kNotStarted, a running one ends by its own reply or with
//       the process, and a finished one has been answered already.
// kItems (worker -> owner): u32 seq, u32 number (from 0 without gaps), a return as in kReplies
//       The items that running generators yield, each sent before the reply that ends its task. The
//       object id of an item has the index number + 2.
// kItemsTaken (owner -> worker): u32 seq, u32 items taken (UINT32_MAX: all there will be)
//       Only for generators with a limit on how far they may be ahead of their consumer.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/base/byte_reader.h"

namespace rt::worker::wire {

inline constexpr uint32_t kTasks = 1, kReplies = 2, kTakeBack = 3, kCancel = 4, kItems = 5,
                          kItemsTaken = 6;
// Limits the small values inside one message: those that a task inlines for references, and the
// returns of a task. Frames have a limit (common/rpc/frame.h).
inline constexpr size_t kMaxInlinedBytes = 10 << 20;
// The fewest bytes of an argument or a return, to bound counts that a peer sends.
inline constexpr size_t kMinValueBytes = 5;
inline constexpr uint8_t kTemplateRecord = 1, kTaskRecord = 2, kGpuRecord = 3, kParentRecord = 4,
                         kRecordedRecord = 5;
inline constexpr uint8_t kLeaving = 0x80;
inline constexpr uint8_t kCancelForce = 1, kCancelRecursive = 2;

// The first byte of an argument, a return or an item: where its value is.
enum class ValuePlace : uint8_t {
  kInline = 0,
  kInStore = 1,
  kAtOwner = 2,  // only an argument
};

enum class TaskStatus : uint8_t {
  kOk = 0,
  kError = 1,
  kErrorRetry = 2,
  kNotStarted = 3,
  // An error: the node's store has no room for the arguments. No user code has run.
  kNoRoom = 4,
};

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  // Numbers and ids, one after the other. Each call appends once: fields that follow each other are
  // cheapest in one call.
  template <class... T>
  void fields(const T&... values) {
    static_assert((std::has_unique_object_representations_v<T> && ...));
    char packed[(sizeof(T) + ...)];
    char* at = packed;
    ((std::memcpy(at, &values, sizeof values), at += sizeof values), ...);
    out_.append(packed, sizeof packed);
  }
  void bytes(std::string_view b) { out_.append(b); }
  // Bytes after their length: of 16 bits for names and addresses, of 32 bits for a value in place.
  void text(std::string_view b) {
    fields(static_cast<uint16_t>(b.size()));
    bytes(b);
  }
  void inline_value(std::string_view encoded) {
    fields(ValuePlace::kInline, static_cast<uint32_t>(encoded.size()));
    bytes(encoded);
  }

 private:
  std::string& out_;
};

using Reader = ByteReader;

}  // namespace rt::worker::wire
