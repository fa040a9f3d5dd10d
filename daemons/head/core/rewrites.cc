#include "daemons/head/core/rewrites.h"

#include <optional>
#include <string>
#include <utility>

#include "daemons/head/core/actor_queries.h"

namespace rt::head {
namespace {

// `lives(key)` says whether the record is there and says that its subject has not ended.
template <class Lives, class RecordOf>
void write_ends_in(Journal& journal, const char* table, Lives lives, RecordOf record) {
  for (const std::string& key : journal.unsettled(table)) {
    if (lives(key)) continue;
    if (std::optional<std::string> value = record(key)) {
      journal.put(table, key, *std::move(value));
    } else {
      journal.erase(table, key);
    }
  }
}

}  // namespace

void write_ends(HeadParts& head) {
  write_ends_in(
      head.journal, table::kJobs,
      [&](const std::string& key) { return head.jobs.running(JobId::from_binary(key)); },
      [&](const std::string& key) { return head.jobs.record(key); });
  const ActorDirectory& actors = head.actors.directory();
  write_ends_in(
      head.journal, table::kActors,
      [&](const std::string& key) {
        const Actor* actor = actors.find(ActorId::from_binary(key));
        return actor && !actor->dead();
      },
      [&](const std::string& key) { return actor_record(actors, key); });
  write_ends_in(
      head.journal, table::kSubmittedJobs,
      [&](const std::string& key) { return head.submitted.lives(key); },
      [&](const std::string& key) { return head.submitted.record(key); });
}

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
  write_ends(head_);
}

}  // namespace rt::head
