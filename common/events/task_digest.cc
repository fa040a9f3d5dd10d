#include "common/events/task_digest.h"

#include <algorithm>
#include <utility>

#include "common/events/wire.h"

namespace rt {
namespace {

using events::put;
using events::put_string;
using events::Reader;

constexpr uint32_t kVersion = 2, kShortVersion = 1, kCppFlag = 2;
// Tasks of one owner go to several workers: what lies between two of a batch is mostly with the others, at about the same time.
constexpr uint64_t kNear = 4096;
constexpr size_t kMaxRanges = 256, kRangeBytes = 16;
constexpr size_t kMaxGroups = 512;
constexpr size_t kGroupBytes = ActorId::kSize + JobId::kSize + 4 * 4 + 1 + 4;

// Collects groups and the strings they use. Neighbours are mostly alike, and a batch has few kinds of them.
class Counter {
 public:
  explicit Counter(const TaskEventBatchData& batch) : batch_(batch), numbers_(batch.strings.size(), kUnused), errors_(batch.strings.size(), kUnused) { strings_.emplace_back(); }

  // False: too many groups.
  bool add(const TaskEvent& event) {
    const TaskEvent* before = std::exchange(before_, &event);
    if (before && same_tail(event.task, before->task) && static_cast<const TaskEventCommon&>(event) == *before) {
      ++groups_[last_].events;
      return true;
    }
    TaskDigest::Group group;
    if (is_actors(event.kind)) group.actor = actor_of(event.task);
    group.job = job_of(event.task);
    group.attempt = event.attempt;
    group.name = event.name;
    group.function = event.function;
    group.error = event.error;
    group.kind = event.kind;
    if (last_ >= groups_.size() || !alike(groups_[last_], group)) {
      auto found = std::find_if(groups_.begin(), groups_.end(), [&](const TaskDigest::Group& known) { return alike(known, group); });
      last_ = static_cast<size_t>(found - groups_.begin());
      if (found == groups_.end()) groups_.push_back(group);
    }
    ++groups_[last_].events;
    return groups_.size() <= kMaxGroups;
  }

  std::string pack() {
    for (auto& group : groups_) {
      group.name = number(numbers_, group.name, batch_.strings[group.name]);
      group.function = number(numbers_, group.function, batch_.strings[group.function]);
      const std::string& error = batch_.strings[group.error];
      group.error = group.error ? number(errors_, group.error, error.substr(0, error.find('\n'))) : 0;
    }
    std::string out;
    put(out, kVersion);
    put(out, static_cast<uint32_t>(strings_.size()));
    for (const std::string& text : strings_) put_string(out, text);
    put_string(out, batch_.node_ip);
    put_string(out, batch_.worker_hex);
    put_string(out, batch_.node_hex);
    put(out, batch_.pid);
    put(out, batch_.is_cpp ? kCppFlag : 0u);
    put(out, static_cast<uint32_t>(groups_.size()));
    for (const auto& group : groups_) put_group(out, group);
    return out;
  }

 private:
  static constexpr uint32_t kUnused = ~uint32_t{0};

  static bool alike(const TaskDigest::Group& a, const TaskDigest::Group& b) {
    return a.name == b.name && a.function == b.function && a.error == b.error && a.kind == b.kind && a.attempt == b.attempt && a.actor == b.actor && a.job == b.job;
  }

  uint32_t number(std::vector<uint32_t>& known, uint32_t index, std::string text) {
    if (known[index] == kUnused) {
      known[index] = static_cast<uint32_t>(strings_.size());
      strings_.push_back(std::move(text));
    }
    return known[index];
  }

  static void put_group(std::string& out, const TaskDigest::Group& group) {
    out += group.actor.view();
    out += group.job.view();
    put(out, group.attempt);
    put(out, group.name);
    put(out, group.function);
    put(out, group.error);
    put(out, group.kind);
    put(out, group.events);
  }

  const TaskEventBatchData& batch_;
  std::vector<uint32_t> numbers_, errors_;     // of the batch's strings, in the digest
  std::vector<std::string> strings_;
  std::vector<TaskDigest::Group> groups_;
  size_t last_ = 0;
  const TaskEvent* before_ = nullptr;
};

// Ranges of numbers that come nearly in order: one that is near a range extends it.
class Ranges {
 public:
  void add(uint64_t number) {
    if (many_ || (last_ < ranges_.size() && extend(&ranges_[last_], number))) return;
    for (last_ = 0; last_ < ranges_.size(); ++last_) {
      if (extend(&ranges_[last_], number)) return;
    }
    if (ranges_.size() < kMostTried) ranges_.push_back({number, number});
    else many_ = true;
  }

  // Of at most kMaxRanges; else none.
  std::vector<TaskDigest::Range> sorted() {
    std::sort(ranges_.begin(), ranges_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<TaskDigest::Range> joined;
    for (const auto& range : ranges_) {
      if (!joined.empty() && (range.first <= joined.back().last || range.first - joined.back().last <= kNear)) {
        joined.back().last = std::max(joined.back().last, range.last);
      } else {
        joined.push_back(range);
      }
    }
    if (many_ || joined.size() > kMaxRanges) joined.clear();
    return joined;
  }

 private:
  static constexpr size_t kMostTried = 2 * kMaxRanges;

  static bool extend(TaskDigest::Range* range, uint64_t number) {
    if (number >= range->first ? number > range->last && number - range->last > kNear : range->first - number > kNear) return false;
    range->first = std::min(range->first, number);
    range->last = std::max(range->last, number);
    return true;
  }

  std::vector<TaskDigest::Range> ranges_;
  size_t last_ = 0;
  bool many_ = false;
};

void put_ranges(std::string& out, const std::vector<TaskDigest::Range>& ranges) {
  put(out, static_cast<uint32_t>(ranges.size()));
  for (const auto& range : ranges) {
    put(out, range.first);
    put(out, range.last);
  }
}

std::vector<TaskDigest::Range> get_ranges(Reader& in) {
  std::vector<TaskDigest::Range> ranges;
  uint32_t count = in.get<uint32_t>();
  if (count > in.left() / kRangeBytes) in.take(in.left() + 1);      // not ok from now on
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    uint64_t first = in.get<uint64_t>();
    ranges.push_back({first, in.get<uint64_t>()});
  }
  return ranges;
}

Error not_a_digest(const char* why) { return make_error(Code::kInvalid, std::string("not a digest of task events: ") + why); }

TaskDigest::Group get_group(Reader& in) {
  TaskDigest::Group group;
  group.actor = ActorId::from_binary(in.take(ActorId::kSize));
  group.job = JobId::from_binary(in.take(JobId::kSize));
  group.attempt = in.get<uint32_t>();
  group.name = in.get<uint32_t>();
  group.function = in.get<uint32_t>();
  group.error = in.get<uint32_t>();
  group.kind = in.get<uint8_t>();
  group.events = in.get<uint32_t>();
  return group;
}

}  // namespace

bool TaskDigest::may_have(const std::vector<Range>& ranges, const TaskId& id) {
  const uint64_t number = lead_of(id);
  return ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) { return range.first <= number && number <= range.last; });
}

bool is_actors(uint8_t kind) { return kind == TaskEvent::kActorCreation || kind == TaskEvent::kActorMethod || kind == TaskEvent::kOwnerFailedMethod; }

std::string pack_task_digest(const TaskEventBatchData& batch) {
  Counter counter(batch);
  Ranges tasks, parents;
  uint32_t last_parent = 0;
  for (const TaskEvent& event : batch.events) {
    if (event.kind == TaskEvent::kSubmission) continue;
    if (!counter.add(event)) return {};
    tasks.add(lead_of(event.task));
    if (event.parent && event.parent != last_parent) parents.add(lead_of(TaskId::from_binary(batch.strings[last_parent = event.parent])));
  }
  std::string packed = counter.pack();
  put_ranges(packed, tasks.sorted());
  put_ranges(packed, parents.sorted());
  return packed;
}

Result<TaskDigest> unpack_task_digest(std::string_view packed) {
  Reader in(packed);
  const auto version = in.get<uint32_t>();
  if (version != kVersion && version != kShortVersion) return not_a_digest("another version");
  uint32_t strings = in.get<uint32_t>();
  if (strings > in.left() / sizeof(uint32_t)) return not_a_digest("more strings than bytes");
  TaskDigest digest;
  digest.strings.reserve(strings);
  for (uint32_t i = 0; i < strings; ++i) digest.strings.emplace_back(in.string());
  digest.node_ip = in.string();
  digest.worker_hex = in.string();
  digest.node_hex = in.string();
  digest.pid = in.get<uint32_t>();
  digest.is_cpp = in.get<uint32_t>() & kCppFlag;
  uint32_t groups = in.get<uint32_t>();
  if (!in.ok() || in.left() < groups * kGroupBytes || (version == kShortVersion && in.left() != groups * kGroupBytes)) return not_a_digest("it is cut off");
  digest.groups.reserve(groups);
  for (uint32_t i = 0; i < groups; ++i) {
    digest.groups.push_back(get_group(in));
    const auto& group = digest.groups.back();
    if (std::max({group.name, group.function, group.error}) >= strings) return not_a_digest("a group names a string that is not there");
  }
  if (version == kShortVersion) return digest;
  digest.tasks = get_ranges(in);
  digest.parents = get_ranges(in);
  if (!in.ok() || in.left() != 0) return not_a_digest("its ranges are cut off");
  return digest;
}

}  // namespace rt
