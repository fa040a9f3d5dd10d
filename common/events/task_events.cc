#include "common/events/task_events.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "common/events/wire.h"

namespace rt {
namespace {

using events::put;
using events::put_string;
using events::Reader;

constexpr uint32_t kVersion = 3, kLastVersionOfRows = 2;
constexpr size_t kRowBytes = 81, kShortRowBytes = 61;      // of versions 2 and 1
constexpr size_t kColumns = 8;
// What a process sends at once is three orders of magnitude below; only a forged batch is larger.
constexpr size_t kMaxUnpackedBytes = 128u << 20;
// One of zstd's fast ones: the columns are small already, and this is the time of whoever runs the tasks.
constexpr int kLevel = -3;
constexpr uint32_t kDriverFlag = 1, kNodeFlag = 2, kCppFlag = 4;

Error not_a_batch(std::string_view why) { return make_error(Code::kInvalid, fmt::format("not a batch of task events: {}", why)); }

Result<std::string> decompress(std::string_view packed) {
  unsigned long long size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) return not_a_batch("no compressed frame of known size");
  if (size > kMaxUnpackedBytes) return not_a_batch(fmt::format("it would unpack to {} bytes", size));
  std::string raw(static_cast<size_t>(size), '\0');
  size_t n = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  if (ZSTD_isError(n) || n != raw.size()) return not_a_batch("the compressed frame is damaged");
  return raw;
}

std::string_view tail_of(const TaskId& id) { return id.view().substr(kTaskLeadBytes); }

std::string bytes_of(const TaskEventCommon& common) {
  std::string out;
  for (uint32_t number : {common.attempt, common.name, common.function, common.error, common.parent, common.resources, common.call_site, common.owner}) put(out, number);
  put(out, common.kind);
  return out;
}

// Numbers what it is shown, in the order of first sight.
class Numbering {
 public:
  uint32_t number(std::string bytes) {
    auto [it, added] = known_.try_emplace(std::move(bytes), static_cast<uint32_t>(known_.size()));
    if (added) all_ += it->first;
    return it->second;
  }
  const std::string& all() const { return all_; }
  uint32_t count() const { return static_cast<uint32_t>(known_.size()); }

 private:
  std::unordered_map<std::string, uint32_t> known_;
  std::string all_;
};

// Varints of one number of each event.
class Column {
 public:
  explicit Column(size_t events) : bytes_(std::make_unique_for_overwrite<char[]>(events * events::kMaxVarintBytes)), end_(bytes_.get()) {}
  void add(uint64_t number) { end_ = events::put_varint(end_, number); }
  void add_difference(uint64_t number) { add(events::zigzag(number - std::exchange(before_, number))); }
  std::string_view view() const { return {bytes_.get(), static_cast<size_t>(end_ - bytes_.get())}; }

 private:
  std::unique_ptr<char[]> bytes_;
  char* end_;
  uint64_t before_ = 0;
};

// In one pass: many events do not fit into a processor's nearest caches.
void put_events(std::string& out, const std::vector<TaskEvent>& events) {
  const size_t n = events.size();
  Numbering tails, commons;
  Column tail_column(n), leads(n), common_column(n), starts(n), created(n), deserialized(n), executed(n), stored(n);
  const TaskEvent* before = nullptr;
  uint32_t tail = 0, common = 0;
  for (const TaskEvent& event : events) {
    if (!before || !same_tail(event.task, before->task)) tail = tails.number(std::string(tail_of(event.task)));
    if (!before || static_cast<const TaskEventCommon&>(event) != *before) common = commons.number(bytes_of(event));
    before = &event;
    tail_column.add(tail);
    leads.add_difference(lead_of(event.task));
    common_column.add(common);
    starts.add_difference(static_cast<uint64_t>(event.start_us));
    created.add_difference(static_cast<uint64_t>(event.created_us));
    deserialized.add(event.deserialize_us);
    executed.add(event.execute_us);
    stored.add(event.store_us);
  }
  put(out, static_cast<uint32_t>(n));
  put(out, tails.count());
  put(out, commons.count());
  out += tails.all();
  out += commons.all();
  for (const Column* column : {&tail_column, &leads, &common_column, &starts, &created, &deserialized, &executed, &stored}) out += column->view();
}

TaskEventCommon get_common(Reader& in) {
  TaskEventCommon common;
  for (uint32_t* field : {&common.attempt, &common.name, &common.function, &common.error, &common.parent, &common.resources, &common.call_site, &common.owner}) *field = in.get<uint32_t>();
  common.kind = in.get<uint8_t>();
  return common;
}

template <class Set>
void get_column(Reader& in, std::vector<TaskEvent>* events, Set set) {
  for (TaskEvent& event : *events) set(event, in.varint());
}

template <class Set>
void get_differences(Reader& in, std::vector<TaskEvent>* events, Set set) {
  uint64_t now = 0;
  get_column(in, events, [&](TaskEvent& event, uint64_t difference) { set(event, now += events::unzigzag(difference)); });
}

Status get_events(Reader& in, std::vector<TaskEvent>* events) {
  const auto count = in.get<uint32_t>(), tail_count = in.get<uint32_t>(), common_count = in.get<uint32_t>();
  if (count > kMaxBatchEvents || count > in.left() / kColumns) return not_a_batch("more events than bytes");
  if (tail_count > count || common_count > count) return not_a_batch("more kinds of events than events");
  std::string_view tails = in.take(tail_count * kTaskTailBytes);
  std::vector<TaskEventCommon> commons;
  for (uint32_t i = 0; i < common_count && in.ok(); ++i) commons.push_back(get_common(in));
  events->resize(count);
  bool known = in.ok();
  get_column(in, events, [&](TaskEvent& event, uint64_t tail) {
    if (known = known && tail < tail_count; known) std::memcpy(event.task.data() + kTaskLeadBytes, tails.data() + tail * kTaskTailBytes, kTaskTailBytes);
  });
  get_differences(in, events, [](TaskEvent& event, uint64_t lead) { std::memcpy(event.task.data(), &lead, kTaskLeadBytes); });
  get_column(in, events, [&](TaskEvent& event, uint64_t common) {
    if (known = known && common < common_count; known) static_cast<TaskEventCommon&>(event) = commons[common];
  });
  get_differences(in, events, [](TaskEvent& event, uint64_t us) { event.start_us = static_cast<int64_t>(us); });
  get_differences(in, events, [](TaskEvent& event, uint64_t us) { event.created_us = static_cast<int64_t>(us); });
  get_column(in, events, [](TaskEvent& event, uint64_t us) { event.deserialize_us = static_cast<uint32_t>(us); });
  get_column(in, events, [](TaskEvent& event, uint64_t us) { event.execute_us = static_cast<uint32_t>(us); });
  get_column(in, events, [](TaskEvent& event, uint64_t us) { event.store_us = static_cast<uint32_t>(us); });
  if (!known) return not_a_batch("an event is of a kind that is not there");
  if (!in.ok() || in.left() != 0) return not_a_batch("its columns are cut off");
  return {};
}

// A row of version 1, or with `whole` of 2.
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

bool indexes_fit(const TaskEventCommon& event, size_t strings) {
  return std::max({event.name, event.function, event.error, event.parent, event.resources, event.call_site, event.owner}) < strings;
}

}  // namespace

std::string pack_task_events(const TaskEventBatchData& batch) {
  std::string raw;
  put(raw, kVersion);
  put(raw, static_cast<uint32_t>(batch.strings.size()));
  for (const std::string& text : batch.strings) put_string(raw, text);
  put_string(raw, batch.node_ip);
  put_string(raw, batch.worker_hex);
  put(raw, (batch.is_driver ? kDriverFlag : 0u) | kNodeFlag | (batch.is_cpp ? kCppFlag : 0u));
  put_string(raw, batch.node_hex);
  put(raw, batch.pid);
  put_events(raw, batch.events);
  const size_t bound = ZSTD_compressBound(raw.size());
  auto packed = std::make_unique_for_overwrite<char[]>(bound);
  size_t n = ZSTD_compress(packed.get(), bound, raw.data(), raw.size(), kLevel);
  RT_CHECK(!ZSTD_isError(n));
  return std::string(packed.get(), n);
}

Result<TaskEventBatchData> unpack_task_events(std::string_view packed) {
  RT_ASSIGN(std::string raw, decompress(packed));
  Reader in(raw);
  const auto version = in.get<uint32_t>();
  if (version == 0 || version > kVersion) return not_a_batch(fmt::format("version {} instead of {}", version, kVersion));
  const auto count = in.get<uint32_t>();
  if (count > in.left() / sizeof(uint32_t)) return not_a_batch("more strings than bytes");
  TaskEventBatchData batch;
  batch.strings.reserve(count);
  for (uint32_t i = 0; i < count; ++i) batch.strings.emplace_back(in.string());
  batch.node_ip = in.string();
  batch.worker_hex = in.string();
  const auto flags = in.get<uint32_t>();
  batch.is_driver = flags & kDriverFlag;
  batch.is_cpp = flags & kCppFlag;
  if (flags & kNodeFlag) {
    batch.node_hex = in.string();
    batch.pid = in.get<uint32_t>();
  }
  if (!in.ok()) return not_a_batch("it is cut off");
  RT_TRY(version <= kLastVersionOfRows ? get_rows(in, version == kLastVersionOfRows, &batch.events) : get_events(in, &batch.events));
  for (const TaskEvent& event : batch.events) {
    if (!indexes_fit(event, batch.strings.size())) return not_a_batch("an event names a string that is not there");
  }
  return batch;
}

}  // namespace rt
