// Selects and counts tasks in one pass over the live tasks and the history of ended ones. Filters
// and limit are applied while reading. Does no I/O; one thread.
//
// The caller passes all live tasks to add_live() first and then the history batch by batch, so that
// a task which ended in between replaces its live record. Of the attempts that match, the newest
// `limit` are kept, so memory is bounded by the limit and by the number of live tasks. Rows are
// sorted by task id.
//
// A batch of the history is either read whole (add_history), or counted by its digest (count) and
// read for its rows later if they may be among the newest (take_rows).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/base/ids.h"
#include "common/proto/head.pb.h"
#include "common/proto/worker.pb.h"
#include "observability/events/task_digest.h"
#include "observability/state/rows.h"

namespace rt::state {

struct TaskSelection {
  Filters filters;
  int64_t limit = 100;
  bool by_kind = false;  // Whether kinds() will be called.
  // Names of named actors. The creation of such an actor is listed as "name:Class.__init__".
  std::unordered_map<ActorId, std::string> actor_names;
};

class TaskQuery {
 public:
  explicit TaskQuery(TaskSelection selection);

  // Adds a live task. Both its owner and the process that runs it report it; the records are
  // merged.
  void add_live(const proto::TaskRecord& record);
  void add_history(const TaskEventBatchData& batch) { read(batch, true); }
  // Adds the pseudo-task of a job's driver.
  void add_driver(const proto::JobInfo& job);

  // Whether the filters use columns that a digest lacks, such as the ids of a task and its parent.
  bool needs_events() const { return needs_events_; }
  // Whether the filters require one task or one parent, which only a few batches can contain.
  bool is_narrow() const { return wanted_task_ || wanted_parent_; }
  // Whether the batch of this digest may contain the required task or children of the required
  // parent.
  bool may_match(const TaskDigest& digest) const;
  // Whether the digest is enough to count the batch. It is not if the filters use the place where a
  // task ran and the batch has failures recorded by owners: digests omit the place of those.
  bool can_count(const TaskDigest& digest) const;
  // Whether a live task matches. If so, batches recorded meanwhile must be read whole, because a
  // task that is live here and has ended there must be counted once.
  bool any_live_task_matches() const;
  // Counts the batch and returns how many of its tasks match.
  int64_t count(const TaskDigest& digest);
  // Reads the rows of a batch that count() has counted.
  void take_rows(const TaskEventBatchData& batch) { read(batch, false); }
  // Whether a task that ended at `before_us` or earlier (wall clock) could still be kept.
  bool may_keep_rows_ending_by(int64_t before_us) const;

  struct Result {
    std::vector<Json> rows;
    int64_t total = 0;  // All tasks that match, even beyond the limit.
  };
  // The results: rows(), lineage(), kinds() and summary() consume what was added, so only one of
  // them is called, after everything has been added.
  Result rows();
  // The newest `limit` tasks as a tree: {"summary": [...] (lineage.h), "total_tasks", ...}.
  Json lineage();
  // The labels by which metrics count tasks.
  struct Kind {
    std::string name, state, job_hex;
    bool is_retry = false;
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  std::map<Kind, int64_t> kinds();
  // Actors that run a method, according to the live tasks. To be called before read_history() and
  // before any result is taken, which remove live tasks.
  std::set<ActorId> busy_actors() const;
  // {"summary": {name: {func_or_class_name, type, state_counts}}, "total_tasks", ...} for all tasks
  // that match.
  Json summary();

 private:
  using Key = std::pair<TaskId, uint32_t>;  // The task and the attempt number.
  struct View;
  struct Kept {
    Json row;
    int64_t at_us = 0;
  };
  // Storage for the hex ids that a View points into.
  struct Texts {
    std::string node, worker;
  };
  static View view_of(const Key& key, const proto::TaskRecord& record, Texts* texts);
  void read(const TaskEventBatchData& batch, bool counted);
  bool matches(const View& view) const;
  void count(const View& view, int64_t tasks);
  void consider(const Key& key, const View& view, bool counted = true);
  void keep(const Key& key, const View& view);
  void take_live();
  Field field(const View& view, int column) const;
  Json totals(Json summary, const char* by);
  Json row_of(const View& view) const;
  std::string name_of(const View& view) const;

  TaskSelection selection_;
  const Resource& resource_;
  bool needs_events_ = false, looks_at_place_ = false;
  std::optional<TaskId> wanted_task_, wanted_parent_;
  std::map<Key, proto::TaskRecord> live_;
  std::map<Key, Kept> kept_;
  std::set<std::pair<int64_t, Key>> by_time_;  // The keys of kept_, the oldest first.
  int64_t total_ = 0;
  struct Count {
    std::string type;
    std::map<std::string, int64_t> states;
  };
  std::map<std::string, Count> counts_;
  std::map<std::string, int64_t> types_;
  std::map<Kind, int64_t> kinds_;
};

}  // namespace rt::state
