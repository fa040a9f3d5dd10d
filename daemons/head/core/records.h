// What the core persists: named tables of opaque records. Shared with storage/, which knows nothing
// else of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rt::head {

namespace table {
inline constexpr char kMeta[] = "meta";    // cluster_id, incarnation, next_job
inline constexpr char kNodes[] = "nodes";  // node id -> proto::Node
inline constexpr char kJobs[] = "jobs";    // job id -> proto::JobInfo
inline constexpr char kActors[] =
    "actors";  // actor id -> proto::ActorInfo; the last dead_actors_kept dead ones, too
inline constexpr char kKv[] = "kv";           // kv_key() -> value
inline constexpr char kKvJobs[] = "kv_jobs";  // kv_key() -> ids of the jobs whose end frees it
inline constexpr char kSubmittedJobs[] = "submitted_jobs";  // submission id -> proto::SubmittedJob
}  // namespace table

struct Write {
  std::string table, key;
  std::optional<std::string> value;  // none: delete
};
using Batch = std::vector<Write>;  // applied atomically

using Records = std::map<std::string, std::string>;
using Tables = std::map<std::string, Records>;

}  // namespace rt::head
