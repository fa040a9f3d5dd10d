#include "common/events/task_events.h"

#include <fmt/format.h>
#include <zstd.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/events/wire.h"

namespace rt {
namespace {

using events::put;
using events::put_string;
using events::Reader;

constexpr uint32_t kVersion = 2, kShortVersion = 1;
constexpr size_t kRecordBytes = 81, kShortRecordBytes = 61;
// What a process sends at once is three orders of magnitude below; only a forged batch is larger.
constexpr size_t kMaxUnpackedBytes = 128u << 20;
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

void put_event(std::string& out, const TaskEvent& event) {
  out += event.task.view();
  put(out, event.attempt);
  put(out, event.name);
  put(out, event.function);
  put(out, event.error);
  put(out, event.start_us);
  put(out, event.deserialize_us);
  put(out, event.execute_us);
  put(out, event.store_us);
  put(out, event.kind);
  put(out, event.parent);
  put(out, event.resources);
  put(out, event.call_site);
  put(out, event.created_us);
}

TaskEvent get_event(Reader& in, bool whole) {
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

// A JSON string literal; bytes that are not UTF-8 become replacement characters, so that the trace always loads.
std::string json_literal(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Writes the trace events of one process. Literals are cached by string index: a batch repeats few names.
class TraceWriter {
 public:
  TraceWriter(const TaskEventBatchData& batch, std::string* json) : batch_(batch), json_(json), names_(batch.strings.size()), categories_(batch.strings.size()) {
    process_ = fmt::format(R"(,"pid":{},"tid":{})", json_literal(batch.node_ip), json_literal((batch.is_driver ? "driver:" : "worker:") + batch.worker_hex));
  }

  void task(const TaskEvent& event) {
    if (event.kind == TaskEvent::kOwnerFailedTask || event.kind == TaskEvent::kOwnerFailedMethod) return;   // nothing ran
    if (event.kind == TaskEvent::kSubmission) return span(R"("submit_task")", R"("submit_task")", "background_memory_dump", event.start_us, event.execute_us, "{}");
    std::string failure = event.error ? failure_args(batch_.strings[event.error]) : "";
    bool failed_constructor = event.kind == TaskEvent::kActorCreation && event.error;
    const std::string& category = category_of(event.function);
    const std::string& name = name_of(event.name);
    int64_t total_us = int64_t{event.deserialize_us} + event.execute_us + event.store_us;
    span(category, failed_constructor ? category : name, "generic_work", event.start_us, total_us,
         failed_constructor ? failure : fmt::format(R"({{"name":{},"task_id":"{}"}})", name, event.task.hex()));
    int64_t at_us = event.start_us;
    phase("task:deserialize_arguments", "rail_load", at_us, event.deserialize_us, "{}");
    at_us += event.deserialize_us;
    phase("task:execute", "rail_animation", at_us, event.execute_us, event.error ? failure : "{}");
    at_us += event.execute_us;
    if (!event.error) phase("task:store_outputs", "rail_idle", at_us, event.store_us, "{}");
  }

 private:
  void phase(std::string_view category, std::string_view colour, int64_t ts_us, int64_t dur_us, std::string_view args) {
    std::string literal = fmt::format("\"{}\"", category);
    span(literal, literal, colour, ts_us, dur_us, args);
  }

  void span(std::string_view category, std::string_view name, std::string_view colour, int64_t ts_us, int64_t dur_us, std::string_view args) {
    if (!first_) *json_ += ',';
    first_ = false;
    fmt::format_to(std::back_inserter(*json_), R"({{"cat":{},"name":{}{},"ts":{}.0,"dur":{}.0,"ph":"X","cname":"{}","args":{}}})", category, name,
                   process_, ts_us, dur_us, colour, args);
  }

  const std::string& name_of(uint32_t index) {
    if (!names_[index]) names_[index] = json_literal(batch_.strings[index]);
    return *names_[index];
  }

  const std::string& category_of(uint32_t index) {
    if (!categories_[index]) categories_[index] = json_literal("task::" + batch_.strings[index]);
    return *categories_[index];
  }

  static std::string failure_args(std::string_view error) {
    size_t type_end = std::min(error.find('\n'), error.size());
    std::string_view type = error.substr(0, type_end), rest = error.substr(std::min(type_end + 1, error.size()));
    size_t value_end = std::min(rest.find('\n'), rest.size());
    return fmt::format(R"({{"type":{},"value":{},"traceback":{}}})", json_literal(type), json_literal(rest.substr(0, value_end)),
                       json_literal(rest.substr(std::min(value_end + 1, rest.size()))));
  }

  const TaskEventBatchData& batch_;
  std::string* json_;
  std::string process_;
  std::vector<std::optional<std::string>> names_, categories_;
  bool first_ = true;
};

bool indexes_fit(const TaskEvent& event, size_t strings) {
  return event.name < strings && event.function < strings && event.error < strings && event.parent < strings && event.resources < strings && event.call_site < strings;
}

}  // namespace

std::string pack_task_events(const TaskEventBatchData& batch) {
  std::string raw;
  raw.reserve(64 + batch.events.size() * kRecordBytes);
  put(raw, kVersion);
  put(raw, static_cast<uint32_t>(batch.strings.size()));
  for (const std::string& text : batch.strings) put_string(raw, text);
  put_string(raw, batch.node_ip);
  put_string(raw, batch.worker_hex);
  put(raw, (batch.is_driver ? kDriverFlag : 0u) | kNodeFlag | (batch.is_cpp ? kCppFlag : 0u));
  put_string(raw, batch.node_hex);
  put(raw, batch.pid);
  for (const TaskEvent& event : batch.events) put_event(raw, event);
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  size_t n = ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 1);
  RT_CHECK(!ZSTD_isError(n));
  packed.resize(n);
  return packed;
}

Result<TaskEventBatchData> unpack_task_events(std::string_view packed) {
  RT_ASSIGN(std::string raw, decompress(packed));
  Reader in(raw);
  uint32_t version = in.get<uint32_t>();
  if (version != kVersion && version != kShortVersion) return not_a_batch(fmt::format("version {} instead of {}", version, kVersion));
  const bool whole = version == kVersion;
  const size_t record_bytes = whole ? kRecordBytes : kShortRecordBytes;
  uint32_t count = in.get<uint32_t>();
  if (count > in.left() / sizeof(uint32_t)) return not_a_batch("more strings than bytes");
  TaskEventBatchData batch;
  batch.strings.reserve(count);
  for (uint32_t i = 0; i < count; ++i) batch.strings.emplace_back(in.string());
  batch.node_ip = in.string();
  batch.worker_hex = in.string();
  uint32_t flags = in.get<uint32_t>();
  batch.is_driver = flags & kDriverFlag;
  batch.is_cpp = flags & kCppFlag;
  if (flags & kNodeFlag) {
    batch.node_hex = in.string();
    batch.pid = in.get<uint32_t>();
  }
  if (!in.ok() || in.left() % record_bytes != 0) return not_a_batch("it is cut off");
  size_t records = in.left() / record_bytes;
  batch.events.reserve(records);
  for (size_t i = 0; i < records; ++i) {
    batch.events.push_back(get_event(in, whole));
    if (!indexes_fit(batch.events.back(), batch.strings.size())) return not_a_batch("a record names a string that is not there");
  }
  return batch;
}

void append_timeline(const TaskEventBatchData& batch, std::string* json) {
  TraceWriter writer(batch, json);
  for (const TaskEvent& event : batch.events) {
    if (indexes_fit(event, batch.strings.size())) writer.task(event);
  }
}

}  // namespace rt
