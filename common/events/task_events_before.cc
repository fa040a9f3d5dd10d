#include "common/events/task_events_before.h"

#include <fmt/format.h>

#include "common/events/zstd_frame.h"

namespace rt::events {
namespace {

constexpr uint32_t kLastVersion = 3, kLastVersionOfRows = 2;
constexpr size_t kRowBytes = 81, kShortRowBytes = 61;  // sizes of rows in versions 2 and 1
constexpr size_t kColumnsOf3 = 8;
constexpr uint32_t kOldDriverFlag = 1, kOldNodeFlag = 2, kOldCppFlag = 4;

template <class Set>
void get_column(Reader& in, std::vector<TaskEvent>* events, Set set) {
  for (TaskEvent& event : *events) set(event, in.varint());
}

template <class Set>
void get_differences(Reader& in, std::vector<TaskEvent>* events, Set set) {
  uint64_t now = 0;
  get_column(in, events, [&](TaskEvent& event, uint64_t difference) {
    set(event, now += unzigzag(difference));
  });
}

Status get_columns(Reader& in, std::vector<TaskEvent>* events) {
  const auto count = in.get<uint32_t>(), tail_count = in.get<uint32_t>(),
             common_count = in.get<uint32_t>();
  if (count > kMaxBatchEvents || count > in.left() / kColumnsOf3)
    return not_a_batch("more events than bytes");
  if (tail_count > count || common_count > count)
    return not_a_batch("more kinds of events than events");
  std::string_view tails = in.take(tail_count * kTaskTailBytes);
  std::vector<TaskEventCommon> commons;
  for (uint32_t i = 0; i < common_count && in.ok(); ++i)
    commons.push_back(get_common(in, kLastVersion));
  events->resize(count);
  bool known = in.ok();
  get_column(in, events, [&](TaskEvent& event, uint64_t tail) {
    if (known = known && tail < tail_count; known)
      std::memcpy(event.task.data() + kTaskLeadBytes, tails.data() + tail * kTaskTailBytes,
                  kTaskTailBytes);
  });
  get_differences(in, events, [](TaskEvent& event, uint64_t lead) {
    std::memcpy(event.task.data(), &lead, kTaskLeadBytes);
  });
  get_column(in, events, [&](TaskEvent& event, uint64_t common) {
    if (known = known && common < common_count; known)
      static_cast<TaskEventCommon&>(event) = commons[common];
  });
  get_differences(in, events,
                  [](TaskEvent& event, uint64_t us) { event.start_us = static_cast<int64_t>(us); });
  get_differences(in, events, [](TaskEvent& event, uint64_t us) {
    event.created_us = static_cast<int64_t>(us);
  });
  get_column(in, events,
             [](TaskEvent& event, uint64_t us) { event.deserialize_us = duration(us); });
  get_column(in, events, [](TaskEvent& event, uint64_t us) { event.execute_us = duration(us); });
  get_column(in, events, [](TaskEvent& event, uint64_t us) { event.store_us = duration(us); });
  if (!known) return not_a_batch("an event is of a kind that is not there");
  if (!in.ok() || in.left() != 0) return not_a_batch("its columns are cut off");
  return {};
}

// Reads a row of version 1, or of version 2 if `whole`.
TaskEvent get_row(Reader& in, bool whole) {
  TaskEvent event;
  event.task = TaskId::from_binary(in.take(TaskId::kSize));
  event.attempt = in.get<uint32_t>();
  event.name = in.get<uint32_t>();
  event.function = in.get<uint32_t>();
  event.error = in.get<uint32_t>();
  event.start_us = in.get<int64_t>();
  event.deserialize_us = in.get<uint32_t>();
  event.execute_us = in.get<uint32_t>();
  event.store_us = in.get<uint32_t>();
  event.kind = in.get<uint8_t>();
  if (!whole) return event;
  event.parent = in.get<uint32_t>();
  event.resources = in.get<uint32_t>();
  event.call_site = in.get<uint32_t>();
  event.created_us = in.get<int64_t>();
  return event;
}

Status get_rows(Reader& in, bool whole, std::vector<TaskEvent>* events) {
  const size_t row_bytes = whole ? kRowBytes : kShortRowBytes;
  if (in.left() % row_bytes != 0) return not_a_batch("it is cut off");
  const size_t rows = in.left() / row_bytes;
  if (rows > kMaxBatchEvents) return not_a_batch("too many events");
  events->reserve(rows);
  for (size_t i = 0; i < rows; ++i) events->push_back(get_row(in, whole));
  return {};
}

}  // namespace

Error not_a_batch(std::string_view why) {
  return make_error(Code::kInvalid, fmt::format("not a batch of task events: {}", why));
}

TaskEventCommon get_common(Reader& in, uint32_t version) {
  TaskEventCommon common;
  for (uint32_t* field : {&common.attempt, &common.name, &common.function, &common.error,
                          &common.parent, &common.resources, &common.call_site, &common.owner})
    *field = in.get<uint32_t>();
  if (version > kGrouplessVersion) common.placement_group = in.get<uint32_t>();
  const auto kind = in.get<uint8_t>();
  common.kind = kind & ~kRecordedBit;
  common.submission_recorded = kind & kRecordedBit;
  return common;
}

Result<TaskEventBatchData> unpack_before_4(std::string_view packed) {
  const auto raw = decompress(packed);
  if (!raw) return raw.error();
  Reader in(*raw);
  const auto version = in.get<uint32_t>();
  if (version == 0 || version > kLastVersion)
    return not_a_batch(
        fmt::format("version {} in a frame of versions up to {}", version, kLastVersion));
  const auto count = in.get<uint32_t>();
  if (count > in.left() / sizeof(uint32_t)) return not_a_batch("more strings than bytes");
  TaskEventBatchData batch;
  batch.strings.reserve(count);
  for (uint32_t i = 0; i < count; ++i) batch.strings.emplace_back(in.string());
  batch.node_ip = in.string();
  batch.worker_hex = in.string();
  const auto flags = in.get<uint32_t>();
  batch.is_driver = flags & kOldDriverFlag;
  batch.is_cpp = flags & kOldCppFlag;
  if (flags & kOldNodeFlag) {
    batch.node_hex = in.string();
    batch.pid = in.get<uint32_t>();
  }
  if (!in.ok()) return not_a_batch("it is cut off");
  RT_TRY(version <= kLastVersionOfRows ? get_rows(in, version == kLastVersionOfRows, &batch.events)
                                       : get_columns(in, &batch.events));
  return batch;
}

}  // namespace rt::events
