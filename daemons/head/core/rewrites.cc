#include "daemons/head/core/rewrites.h"

#include <optional>
#include <string>
#include <utility>

#include "daemons/head/core/actor_queries.h"

namespace rt::head {

void Rewrites::persisted(uint64_t id, const Status& status, Now now) {
  for (auto& continuation : head_.journal.persisted(id, status)) continuation(status, now);
  if (!head_.journal.has_dirty() || retry_timer_) return;
  retry_timer_ =
      head_.timers.at(now.steady_us + head_.options.settings.storage_retry_ms * 1000, [this](Now) {
        retry_timer_ = 0;
        rewrite_dirty();
      });
}

void Rewrites::rewrite_dirty() {
  auto record = [this](const std::string& table,
                       const std::string& key) -> std::optional<std::string> {
    if (table == table::kMeta) {
      if (key == "next_job") return head_.jobs.counter();
      if (key == "incarnation") return std::to_string(head_.incarnation);
      return head_.cluster_id;
    }
    if (table == table::kNodes) {
      const NodeState* node = head_.cluster.find(NodeId::from_binary(key));
      if (!node || !node->alive()) return std::nullopt;
      return record_of(*node);
    }
    if (table == table::kJobs) return head_.jobs.record(key);
    if (table == table::kActors) return actor_record(head_.actors.directory(), key);
    if (table == table::kGroups) return head_.groups.record(key);
    if (table == table::kKv) return head_.kv.record(key);
    if (table == table::kKvJobs) return head_.kv.jobs_record(key);
    return head_.submitted.record(key);
  };
  for (const auto& [table, key] : head_.journal.take_dirty()) {
    const char* const kTables[] = {table::kMeta,   table::kNodes,        table::kJobs,
                                   table::kActors, table::kGroups,       table::kKv,
                                   table::kKvJobs, table::kSubmittedJobs};
    for (const char* known : kTables) {
      if (table != known) continue;
      if (auto value = record(table, key)) {
        head_.journal.put(known, key, *std::move(value));
      } else {
        head_.journal.erase(known, key);
      }
    }
  }
}

}  // namespace rt::head
