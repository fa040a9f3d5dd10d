// The format of what the core persists: named tables of opaque records. The core and storage/
// share this header, and storage/ knows nothing else about the records.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rt::head {

namespace table {
inline constexpr char kMeta[] = "meta";    // Holds cluster_id, incarnation and next_job.
inline constexpr char kNodes[] = "nodes";  // Maps node id to proto::Node.
inline constexpr char kJobs[] = "jobs";    // Maps job id to proto::JobInfo.
// Maps actor id to proto::ActorInfo, for living actors and the last dead_actors_kept dead ones.
inline constexpr char kActors[] = "actors";
// Maps group id to proto::GroupInfo, for groups that are not removed.
inline constexpr char kGroups[] = "groups";
inline constexpr char kKv[] = "kv";           // Maps kv_key() to the value.
inline constexpr char kKvJobs[] = "kv_jobs";  // Maps kv_key() to the jobs that keep the entry.
// Maps submission id to proto::SubmittedJob.
inline constexpr char kSubmittedJobs[] = "submitted_jobs";
}  // namespace table

struct Write {
  std::string table, key;
  std::optional<std::string> value;  // No value means: delete the record.
};
using Batch = std::vector<Write>;  // Storage applies a batch atomically.

using Records = std::map<std::string, std::string>;
using Tables = std::map<std::string, Records>;

}  // namespace rt::head
