#include "daemons/head/core/recovery.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace rt::head {
namespace {

const Records& table_of(const Tables& tables, const char* name) {
  static const Records kNone;
  auto it = tables.find(name);
  return it == tables.end() ? kNone : it->second;
}

template <class Message>
Status parse(const char* table, const std::string& key, const std::string& value, Message* out) {
  if (out->ParseFromString(value)) return {};
  return make_error(Code::kIo,
                    fmt::format("record {} of table '{}' cannot be read: the state is damaged",
                                to_hex(key), table));
}

Status damaged(const char* table, const std::string& key, const char* what) {
  return make_error(Code::kIo, fmt::format("record {} of table '{}' {}: the state is damaged",
                                           to_hex(key), table, what));
}

Status recover_meta(HeadParts& head, const Records& meta) {
  auto number = [&meta](const char* key) {
    int64_t value = 0;
    if (auto it = meta.find(key); it != meta.end())
      std::from_chars(it->second.data(), it->second.data() + it->second.size(), value);
    return value;
  };
  auto recorded = meta.find("cluster_id");
  if (recorded != meta.end()) head.cluster_id = recorded->second;
  if (!head.options.cluster_id.empty()) {
    if (!ClusterId::is_valid(head.options.cluster_id))
      return make_error(Code::kInvalid, fmt::format("a cluster id has {} bytes ({} hex digits)",
                                                    ClusterId::kSize, 2 * ClusterId::kSize));
    if (!head.cluster_id.empty() && head.cluster_id != head.options.cluster_id)
      return make_error(Code::kWrongCluster,
                        fmt::format("the state directory belongs to cluster {}, not {}; give "
                                    "another --state-dir or no --cluster-id",
                                    to_hex(head.cluster_id), to_hex(head.options.cluster_id)));
    head.cluster_id = head.options.cluster_id;
  }
  if (head.cluster_id.empty()) {
    while (head.cluster_id.size() < ClusterId::kSize) {
      uint64_t word = head.rng.next();
      head.cluster_id.append(
          reinterpret_cast<const char*>(&word),
          std::min<size_t>(sizeof word, ClusterId::kSize - head.cluster_id.size()));
    }
  }
  if (!ClusterId::is_valid(head.cluster_id))
    return damaged(table::kMeta, "cluster_id", "has a wrong size");
  head.incarnation = number("incarnation") + 1;
  head.jobs.recover_counter(static_cast<uint32_t>(number("next_job")));
  head.journal.put(table::kMeta, "cluster_id", head.cluster_id);
  head.journal.put(table::kMeta, "incarnation", std::to_string(head.incarnation));
  return {};
}

// Records in the order of their ends, which is the order in which they are forgotten.
template <class Record>
std::vector<Record> by_end(std::vector<Record> records) {
  std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return a.end_time_ms() < b.end_time_ms();
  });
  return records;
}

}  // namespace

Status recover(HeadParts& head, const Tables& tables, Now now) {
  RT_TRY(recover_meta(head, table_of(tables, table::kMeta)));
  for (const auto& [key, value] : table_of(tables, table::kNodes)) {
    proto::Node node;
    RT_TRY(parse(table::kNodes, key, value, &node));
    if (!NodeId::is_valid(key) || node.node_id() != key)
      return damaged(table::kNodes, key, "names another node");
    head.cluster.recover(node, now);
  }
  std::vector<proto::JobInfo> jobs;
  for (const auto& [key, value] : table_of(tables, table::kJobs)) {
    proto::JobInfo job;
    RT_TRY(parse(table::kJobs, key, value, &job));
    if (!JobId::is_valid(key) || job.job_id() != key)
      return damaged(table::kJobs, key, "names another job");
    jobs.push_back(std::move(job));
  }
  for (const auto& job : by_end(std::move(jobs))) head.jobs.recover(job);
  std::vector<proto::ActorInfo> actors;
  for (const auto& [key, value] : table_of(tables, table::kActors)) {
    proto::ActorInfo actor;
    RT_TRY(parse(table::kActors, key, value, &actor));
    if (!ActorId::is_valid(key) || actor.spec().actor_id() != key ||
        !JobId::is_valid(actor.spec().job_id()))
      return damaged(table::kActors, key, "names another actor");
    actors.push_back(std::move(actor));
  }
  // Dead actors come first, in the order of their ends, because that is the order in which they
  // are forgotten. Living actors follow and get their names, which dead ones do not hold.
  std::stable_sort(actors.begin(), actors.end(), [](const auto& a, const auto& b) {
    bool a_dead = a.state() == proto::ACTOR_DEAD, b_dead = b.state() == proto::ACTOR_DEAD;
    return a_dead != b_dead ? a_dead : a_dead && a.end_time_ms() < b.end_time_ms();
  });
  head.groups.begin(head.incarnation);
  for (const auto& [key, value] : table_of(tables, table::kGroups)) {
    proto::GroupInfo group;
    RT_TRY(parse(table::kGroups, key, value, &group));
    if (!GroupId::is_valid(key) || group.spec().group_id() != key ||
        !JobId::is_valid(group.spec().job_id()) ||
        (group.spec().bundles().empty() && group.state() != proto::GROUP_REMOVED))
      return damaged(table::kGroups, key, "names another placement group");
    head.groups.recover(std::move(group));
  }
  for (auto& actor : actors) head.actors.recover(std::move(actor), now);
  head.kv.recover(table_of(tables, table::kKv), table_of(tables, table::kKvJobs));
  std::vector<proto::SubmittedJob> submitted;
  for (const auto& [key, value] : table_of(tables, table::kSubmittedJobs)) {
    proto::SubmittedJob job;
    RT_TRY(parse(table::kSubmittedJobs, key, value, &job));
    if (job.submission_id() != key) return damaged(table::kSubmittedJobs, key, "names another job");
    submitted.push_back(std::move(job));
  }
  for (const auto& job : by_end(std::move(submitted))) head.submitted.recover(job);
  return {};
}

}  // namespace rt::head
