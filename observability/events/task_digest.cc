#include "observability/events/task_digest.h"

#include <algorithm>
#include <utility>

#include "observability/events/wire.h"

namespace rt {
namespace {

using events::put;
using events::put_string;

constexpr uint32_t kDigestVersion = 1, kDigestCppFlag = 2;
// Numbers closer than this share a range. The tasks of one owner are spread over several workers,
// so the numbers in one batch have gaps; the ids in the gaps are mostly in other workers' batches
// of about the same time.
constexpr uint64_t kNear = 4096;
constexpr size_t kMaxRanges = 256, kMostTried = 2 * kMaxRanges, kRangeBytes = 16;
constexpr size_t kMaxGroups = 512;
constexpr size_t kGroupBytes = ActorId::kSize + JobId::kSize + 4 * 4 + 1 + 2 * 4;

void put_group(std::string& out, const TaskDigest::Group& group) {
  out += group.actor.view();
  out += group.job.view();
  put(out, group.attempt);
  put(out, group.name);
  put(out, group.function);
  put(out, group.error);
  put(out, group.kind);
  put(out, group.events);
  put(out, group.placement_group);
}

bool alike(const TaskDigest::Group& a, const TaskDigest::Group& b) {
  return a.name == b.name && a.function == b.function && a.error == b.error && a.kind == b.kind &&
         a.attempt == b.attempt && a.placement_group == b.placement_group && a.actor == b.actor &&
         a.job == b.job;
}

// Renumbers the strings of a batch that the digest uses.
class UsedStrings {
 public:
  explicit UsedStrings(size_t strings) : numbers_(strings, kUnused) {}

  uint32_t number(std::vector<std::string>& used, uint32_t index, std::string_view text) {
    if (numbers_[index] == kUnused) {
      numbers_[index] = static_cast<uint32_t>(used.size());
      used.emplace_back(text);
    }
    return numbers_[index];
  }

 private:
  static constexpr uint32_t kUnused = ~uint32_t{0};
  std::vector<uint32_t> numbers_;
};

// Extends `range` by a range that is near it. Returns false, without a change, if it is not near.
bool extend(TaskDigest::Range* range, const TaskDigest::Range& by) {
  if (by.first > range->last ? by.first - range->last > kNear
                             : range->first > by.last && range->first - by.last > kNear)
    return false;
  range->first = std::min(range->first, by.first);
  range->last = std::max(range->last, by.last);
  return true;
}

void put_ranges(std::string& out, const std::vector<TaskDigest::Range>& ranges) {
  put(out, static_cast<uint32_t>(ranges.size()));
  for (const auto& range : ranges) {
    put(out, range.first);
    put(out, range.last);
  }
}

std::vector<TaskDigest::Range> get_ranges(ByteReader& in) {
  std::vector<TaskDigest::Range> ranges;
  const uint32_t count = in.count(kRangeBytes);
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t first = in.number<uint64_t>();
    ranges.push_back({first, in.number<uint64_t>()});
  }
  return ranges;
}

Error not_a_digest(const char* why) {
  return make_error(Code::kInvalid, std::string("not a digest of task events: ") + why);
}

TaskDigest::Group get_group(ByteReader& in) {
  TaskDigest::Group group;
  group.actor = ActorId::from_binary(in.text(ActorId::kSize));
  group.job = JobId::from_binary(in.text(JobId::kSize));
  group.attempt = in.number<uint32_t>();
  group.name = in.number<uint32_t>();
  group.function = in.number<uint32_t>();
  group.error = in.number<uint32_t>();
  group.kind = in.number<uint8_t>();
  group.events = in.number<uint32_t>();
  group.placement_group = in.number<uint32_t>();
  return group;
}

}  // namespace

bool TaskDigest::may_have(const std::vector<Range>& ranges, const TaskId& id) {
  const uint64_t number = lead_of(id);
  return ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
           return range.first <= number && number <= range.last;
         });
}

bool is_actor_task(uint8_t kind) {
  return kind == TaskEvent::kActorCreation || kind == TaskEvent::kActorMethod ||
         kind == TaskEvent::kOwnerFailedMethod;
}

bool is_recorded_by_owner(uint8_t kind) {
  return kind == TaskEvent::kOwnerFailedTask || kind == TaskEvent::kOwnerFailedMethod;
}

void TaskDigestWriter::Ranges::add(std::span<const uint64_t> numbers) {
  if (numbers.empty()) return;
  const auto [first, last] = std::minmax_element(numbers.begin(), numbers.end());
  if (*last - *first <= kNear) return add({*first, *last});
  for (uint64_t number : numbers) add({number, number});
}

void TaskDigestWriter::Ranges::add(TaskDigest::Range numbers) {
  if (many_ || (last_ < ranges_.size() && extend(&ranges_[last_], numbers))) return;
  for (last_ = 0; last_ < ranges_.size(); ++last_) {
    if (extend(&ranges_[last_], numbers)) return;
  }
  if (ranges_.size() < kMostTried)
    ranges_.push_back(numbers);
  else
    many_ = true;
}

std::vector<TaskDigest::Range> TaskDigestWriter::Ranges::sorted() const {
  std::vector<TaskDigest::Range> all = ranges_, joined;
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& range : all) {
    if (joined.empty() || !extend(&joined.back(), range)) joined.push_back(range);
  }
  if (many_ || joined.size() > kMaxRanges) joined.clear();
  return joined;
}

void TaskDigestWriter::count(const TaskId& task, const TaskEventCommon& common, uint32_t events) {
  if (common.kind == TaskEvent::kSpan) return;
  if (common.parent && (parents_.empty() || common.parent != parents_.back()))
    parents_.push_back(common.parent);
  if (groups_.size() > kMaxGroups) return;
  TaskDigest::Group group;
  if (is_actor_task(common.kind)) group.actor = actor_of(task);
  group.job = job_of(task);
  group.attempt = common.attempt;
  group.name = common.name;
  group.function = common.function;
  group.error = common.error;
  group.kind = common.kind;
  group.placement_group = common.placement_group;
  if (last_ >= groups_.size() || !alike(groups_[last_], group)) {
    last_ =
        static_cast<size_t>(std::find_if(groups_.begin(), groups_.end(),
                                         [&](const auto& known) { return alike(known, group); }) -
                            groups_.begin());
    if (last_ == groups_.size()) groups_.push_back(group);
  }
  groups_[last_].events += events;
}

void TaskDigestWriter::add_tasks(std::span<const uint64_t> leads) { tasks_.add(leads); }

std::string TaskDigestWriter::pack(const TaskEventSource& source,
                                   const std::vector<std::string>& strings) const {
  if (groups_.size() > kMaxGroups) return {};
  std::vector<std::string> used(1);
  UsedStrings words(strings.size()), errors(strings.size());
  std::vector<TaskDigest::Group> groups = groups_;
  for (auto& group : groups) {
    group.name = words.number(used, group.name, strings[group.name]);
    group.function = words.number(used, group.function, strings[group.function]);
    if (group.placement_group)
      group.placement_group =
          words.number(used, group.placement_group, strings[group.placement_group]);
    std::string_view error = strings[group.error];
    group.error =
        group.error ? errors.number(used, group.error, error.substr(0, error.find('\n'))) : 0;
  }
  std::string out;
  put(out, kDigestVersion);
  put(out, static_cast<uint32_t>(used.size()));
  for (const std::string& text : used) put_string(out, text);
  put_string(out, source.node_ip);
  put_string(out, source.worker_hex);
  put_string(out, source.node_hex);
  put(out, source.pid);
  put(out, source.is_cpp ? kDigestCppFlag : 0u);
  put(out, static_cast<uint32_t>(groups.size()));
  for (const auto& group : groups) put_group(out, group);
  put_ranges(out, tasks_.sorted());
  Ranges parents;
  for (uint32_t parent : parents_) {
    const uint64_t lead = lead_of(TaskId::from_binary(strings[parent]));
    parents.add({&lead, 1});
  }
  put_ranges(out, parents.sorted());
  return out;
}

Result<TaskDigest> unpack_task_digest(std::string_view packed) {
  ByteReader in(packed);
  if (in.number<uint32_t>() != kDigestVersion) return not_a_digest("another version");
  uint32_t strings = in.number<uint32_t>();
  if (strings > in.left() / sizeof(uint32_t)) return not_a_digest("more strings than bytes");
  TaskDigest digest;
  digest.strings.reserve(strings);
  for (uint32_t i = 0; i < strings; ++i) digest.strings.emplace_back(in.text());
  digest.node_ip = in.text();
  digest.worker_hex = in.text();
  digest.node_hex = in.text();
  digest.pid = in.number<uint32_t>();
  digest.is_cpp = in.number<uint32_t>() & kDigestCppFlag;
  uint32_t groups = in.number<uint32_t>();
  if (!in.ok() || in.left() < groups * kGroupBytes) return not_a_digest("it is cut off");
  digest.groups.reserve(groups);
  for (uint32_t i = 0; i < groups; ++i) {
    digest.groups.push_back(get_group(in));
    const auto& group = digest.groups.back();
    if (std::max({group.name, group.function, group.error, group.placement_group}) >= strings)
      return not_a_digest("a group names a string that is not there");
  }
  digest.tasks = get_ranges(in);
  digest.parents = get_ranges(in);
  if (!in.ok() || in.left() != 0) return not_a_digest("its ranges are cut off");
  return digest;
}

}  // namespace rt
