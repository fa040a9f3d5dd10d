#include "observability/events/task_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "observability/events/bits.h"
#include "observability/events/task_event_writer.h"
#include "observability/events/wire.h"
#include "observability/events/zstd_frame.h"

namespace rt {
namespace {

using events::kBatchVersion;
using events::kBlock;
using events::kColumns;
using events::kCppFlag;
using events::kDriverFlag;
using events::unzigzag;

constexpr size_t kLeastBlockBytes = 2 * kColumns;  // a column of equal numbers takes two bytes

Error not_a_batch(std::string_view why) {
  return make_error(Code::kInvalid, fmt::format("not a batch of task events: {}", why));
}

// The head of a batch: the values that the columns refer to.
struct Head {
  uint32_t count = 0;
  std::vector<TaskId> owners;  // the latest task of each owner while events are read
  std::vector<TaskEventCommon> commons;
  uint64_t start_us = 0, created_us = 0;
};

Status check_strings(const TaskEventCommon& event, size_t strings) {
  if (names_strings(event, strings)) return {};
  return not_a_batch("an event names a string that is not there");
}

TaskEventCommon get_common(ByteReader& in) {
  TaskEventCommon common;
  common.attempt = in.number<uint32_t>();
  for (auto text : kCommonTexts) common.*text = in.number<uint32_t>();
  const auto kind = in.number<uint8_t>();
  common.kind = kind & ~kRecordedBit;
  common.submission_recorded = kind & kRecordedBit;
  return common;
}

Result<Head> get_head(std::string_view raw, TaskEventBatchData* batch) {
  ByteReader in(raw);
  const auto strings = in.number<uint32_t>();
  if (strings > in.left() / sizeof(uint32_t)) return not_a_batch("more strings than bytes");
  batch->strings.reserve(strings);
  for (uint32_t i = 0; i < strings; ++i) batch->strings.emplace_back(in.text());
  batch->node_ip = in.text();
  batch->worker_hex = in.text();
  const auto flags = in.number<uint32_t>();
  batch->is_driver = flags & kDriverFlag;
  batch->is_cpp = flags & kCppFlag;
  batch->node_hex = in.text();
  batch->pid = in.number<uint32_t>();
  Head head;
  head.count = in.number<uint32_t>();
  const auto owners = in.number<uint32_t>(), commons = in.number<uint32_t>();
  head.start_us = in.number<uint64_t>();
  head.created_us = in.number<uint64_t>();
  if (owners > in.left() / TaskId::kSize) return not_a_batch("more owners than bytes");
  for (uint32_t i = 0; i < owners; ++i)
    head.owners.push_back(TaskId::from_binary(in.text(TaskId::kSize)));
  for (uint32_t i = 0; i < commons && in.ok(); ++i) head.commons.push_back(get_common(in));
  if (!in.ok() || in.left() != 0) return not_a_batch("its head is cut off");
  for (const TaskEventCommon& common : head.commons) RT_TRY(check_strings(common, strings));
  return head;
}

Status get_events(ByteReader& in, Head& head, std::vector<TaskEvent>* events) {
  if (head.count > kMaxBatchEvents ||
      (head.count + kBlock - 1) / kBlock > in.left() / kLeastBlockBytes)
    return not_a_batch("more events than bytes");
  events->resize(head.count);
  uint64_t owner = 0, common = 0;
  std::array<std::array<uint64_t, kBlock>, kColumns> block;
  for (size_t from = 0; from < head.count; from += kBlock) {
    const size_t n = std::min(kBlock, head.count - from);
    for (auto& column : block) {
      if (!events::get_column(in, {column.data(), n})) return not_a_batch("a column is cut off");
    }
    for (size_t i = 0; i < n; ++i) {
      owner += unzigzag(block[events::kOwnerColumn][i]);
      common += unzigzag(block[events::kCommonColumn][i]);
      if (owner >= head.owners.size() || common >= head.commons.size())
        return not_a_batch("an event is of a kind that is not there");
      TaskEvent& event = (*events)[from + i];
      static_cast<TaskEventCommon&>(event) = head.commons[common];
      TaskId& last = head.owners[owner];
      const uint64_t lead = lead_of(last) + unzigzag(block[events::kLeadColumn][i]);
      std::memcpy(last.data(), &lead, kTaskLeadBytes);
      event.task = last;
      event.start_us =
          static_cast<int64_t>(head.start_us += unzigzag(block[events::kStartColumn][i]));
      event.created_us =
          static_cast<int64_t>(head.created_us += unzigzag(block[events::kCreatedColumn][i]));
      event.deserialize_us = events::duration(block[events::kDeserializeColumn][i]);
      event.execute_us = events::duration(block[events::kExecuteColumn][i]);
      event.store_us = events::duration(block[events::kStoreColumn][i]);
    }
  }
  if (in.left() != 0) return not_a_batch("there is more than its columns");
  return {};
}

}  // namespace

Result<TaskEventBatchData> unpack_task_events(std::string_view packed) {
  TaskEventBatchData batch;
  ByteReader in(packed);
  const auto version = in.number<uint32_t>();
  if (version != kBatchVersion)
    return not_a_batch(fmt::format("version {} instead of {}", version, kBatchVersion));
  const auto raw = events::decompress(in.text());
  if (!raw) return raw.error();
  RT_ASSIGN(Head head, get_head(*raw, &batch));
  RT_TRY(get_events(in, head, &batch.events));
  return batch;
}

std::string pack_event_process(const EventProcess& process) {
  return fmt::format("{}{}{}", process.worker_id, process.node_id, process.pid);
}

std::optional<EventProcess> unpack_event_process(std::string_view packed) {
  constexpr size_t kIds = WorkerId::kSize + NodeId::kSize;
  EventProcess process;
  if (packed.size() <= kIds) return std::nullopt;
  const char *digits = packed.data() + kIds, *end = packed.data() + packed.size();
  if (auto [last, error] = std::from_chars(digits, end, process.pid);
      error != std::errc() || last != end)
    return std::nullopt;
  process.worker_id = packed.substr(0, WorkerId::kSize);
  process.node_id = packed.substr(WorkerId::kSize, NodeId::kSize);
  return process;
}

}  // namespace rt
