#include "observability/events/task_event_writer.h"

#include <algorithm>
#include <utility>

#include "observability/events/wire.h"
#include "observability/events/zstd_frame.h"

namespace rt {

using events::kBatchVersion;
using events::kCppFlag;
using events::kDriverFlag;
using events::put;
using events::put_string;
using events::zigzag;

namespace {

uint64_t mix(uint64_t hash, uint64_t number) { return (hash ^ number) * 0x9e3779b97f4a7c15ull; }

uint8_t packed_kind(const TaskEventCommon& common) {
  return common.submission_recorded ? common.kind | kRecordedBit : common.kind;
}

}  // namespace

TaskEventWriter::TaskEventWriter() { clear(); }

TaskEventWriter::TaskEventWriter(std::vector<std::string> strings) : TaskEventWriter() {
  strings_ = events::StringTable(std::move(strings));
}

size_t TaskEventWriter::TailHash::operator()(const TaskId& id) const {
  uint64_t words[2];
  std::memcpy(words, id.data() + kTaskLeadBytes, kTaskTailBytes);
  return mix(mix(0, words[0]), words[1]) >> 16;
}

size_t TaskEventWriter::CommonHash::operator()(const TaskEventCommon& common) const {
  uint64_t hash = mix(0, common.attempt);
  for (auto text : kCommonTexts) hash = mix(hash, common.*text);
  return mix(hash, packed_kind(common)) >> 16;
}

void TaskEventWriter::clear() {
  strings_.clear();
  owners_.clear();
  leads_.clear();
  owner_numbers_.clear();
  commons_.clear();
  common_numbers_.clear();
  columns_.clear();
  size_ = run_ = 0;
  digest_ = {};
  ++batch_;
}

uint32_t TaskEventWriter::owner_of(const TaskId& task) {
  if (size_ > 0 && same_tail(task, owners_[owner_])) return owner_;
  const auto number =
      owner_numbers_.try_emplace(task, static_cast<uint32_t>(owners_.size())).first->second;
  if (number == owners_.size()) {
    owners_.push_back(task);
    leads_.push_back(lead_of(task));
  }
  return number;
}

uint32_t TaskEventWriter::common_number(const TaskEventCommon& common) {
  if (size_ > 0 && common == commons_[common_]) return common_;
  const auto number =
      common_numbers_.try_emplace(common, static_cast<uint32_t>(commons_.size())).first->second;
  if (number == commons_.size()) commons_.push_back(common);
  return number;
}

void TaskEventWriter::add(const TaskId& task, const TaskEventCommon& common,
                          const TaskEventTimes& times) {
  add(task, common_number(common), times);
}

void TaskEventWriter::add(const TaskId& task, uint32_t common, const TaskEventTimes& times) {
  const uint32_t owner = owner_of(task);
  const uint64_t lead = lead_of(task);
  if (size_ == 0) {
    owner_ = common_ = 0;
    start_us_ = first_start_us_ = min_us_ = max_us_ = times.start_us;
    created_us_ = first_created_us_ = times.created_us;
  }
  if (owner != owner_ || common != common_) count_run();
  columns_.set(events::kOwnerColumn, zigzag(uint64_t{owner} - std::exchange(owner_, owner)));
  columns_.set(events::kLeadColumn, zigzag(lead - std::exchange(leads_[owner], lead)));
  columns_.set(events::kCommonColumn, zigzag(uint64_t{common} - std::exchange(common_, common)));
  columns_.set(events::kStartColumn,
               zigzag(static_cast<uint64_t>(times.start_us) -
                      static_cast<uint64_t>(std::exchange(start_us_, times.start_us))));
  columns_.set(events::kCreatedColumn,
               zigzag(static_cast<uint64_t>(times.created_us) -
                      static_cast<uint64_t>(std::exchange(created_us_, times.created_us))));
  columns_.set(events::kDeserializeColumn, static_cast<uint64_t>(times.deserialize_us));
  columns_.set(events::kExecuteColumn, static_cast<uint64_t>(times.execute_us));
  columns_.set(events::kStoreColumn, static_cast<uint64_t>(times.store_us));
  columns_.set_lead(lead);
  min_us_ = std::min(min_us_, times.start_us);
  max_us_ =
      std::max(max_us_, times.start_us + times.deserialize_us + times.execute_us + times.store_us);
  ++run_;
  ++size_;
  if (columns_.end_event()) end_block();
}

// Consecutive events mostly share owner and common fields, so the digest counts runs of them.
void TaskEventWriter::count_run() {
  if (run_ > 0) digest_.count(owners_[owner_], commons_[common_], std::exchange(run_, 0));
}

void TaskEventWriter::end_block() { digest_.add_tasks(columns_.end_block()); }

std::string TaskEventWriter::head_of(const TaskEventSource& source) const {
  std::string head;
  put(head, static_cast<uint32_t>(strings_.all().size()));
  for (const std::string& text : strings_.all()) put_string(head, text);
  put_string(head, source.node_ip);
  put_string(head, source.worker_hex);
  put(head, (source.is_driver ? kDriverFlag : 0u) | (source.is_cpp ? kCppFlag : 0u));
  put_string(head, source.node_hex);
  put(head, source.pid);
  for (size_t count : {size_, owners_.size(), commons_.size()})
    put(head, static_cast<uint32_t>(count));
  put(head, first_start_us_);
  put(head, first_created_us_);
  for (const TaskId& owner : owners_) head += owner.view();
  for (const TaskEventCommon& common : commons_) {
    put(head, common.attempt);
    for (auto text : kCommonTexts) put(head, common.*text);
    put(head, packed_kind(common));
  }
  return head;
}

std::string TaskEventWriter::events(const TaskEventSource& source) {
  if (columns_.is_open()) end_block();
  std::string packed;
  const std::string head = events::compress(head_of(source));
  packed.reserve(2 * sizeof(uint32_t) + head.size() + columns_.packed().size());
  put(packed, kBatchVersion);
  put_string(packed, head);
  return packed += columns_.packed();
}

std::string TaskEventWriter::digest(const TaskEventSource& source) {
  if (columns_.is_open()) end_block();
  count_run();
  return digest_.pack(source, strings_.all());
}

namespace {

TaskEventWriter written(const TaskEventBatchData& batch) {
  TaskEventWriter writer(batch.strings);
  for (const TaskEvent& event : batch.events) writer.add(event);
  return writer;
}

}  // namespace

std::string pack_task_events(const TaskEventBatchData& batch) {
  return written(batch).events(batch);
}
std::string pack_task_digest(const TaskEventBatchData& batch) {
  return written(batch).digest(batch);
}

}  // namespace rt
