// Chooses tasks: one pass over what processes have to do and the history of what has ended, with
// filters and limit applied while reading.
//
// Feed it all add_live() first, then the history batch by batch: what ended meanwhile replaces the
// live task. Of the tasks that match, the newest `limit` are kept (attempts count apiece), so
// memory is bounded by the limit and by what lives. Rows are sorted by task id.
//
// A batch is given whole (add_history), or counted by its digest first (count) and read for rows
// later, if at all (take_rows).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/base/ids.h"
#include "common/events/task_digest.h"
#include "common/proto/head.pb.h"
#include "common/proto/worker.pb.h"
#include "common/state/rows.h"

namespace rt::state {

struct TaskSelection {
  Filters filters;
  int64_t limit = 100;
  bool by_kind = false;  // kinds() is wanted
  std::unordered_map<ActorId, std::string>
      actor_names;  // of named actors: their creation is listed as "name:Class.__init__"
};

class TaskQuery {
 public:
  explicit TaskQuery(TaskSelection selection);

  // As its owner and the process that has it to run say it; the two are merged.
  void add_live(const proto::TaskRecord& record);
  void add_history(const TaskEventBatchData& batch) { read(batch, true); }
  // The pseudo-task of a job's driver.
  void add_driver(const proto::JobInfo& job);

  // Filters look at what a digest has not.
  bool needs_events() const { return needs_events_; }
  // They name one task, or one parent: few batches can have what is looked for.
  bool is_narrow() const { return wanted_task_ || wanted_parent_; }
  bool may_match(const TaskDigest& digest) const;
  // False: they look at where a task was, and of those that only their owner saw fail the digest
  // does not know.
  bool can_count(const TaskDigest& digest) const;
  // A live task is among what is chosen: one that has ended meanwhile must be found in the history.
  bool live_matters() const;
  // Counts the batch, and says how many of its tasks match.
  int64_t count(const TaskDigest& digest);
  void take_rows(const TaskEventBatchData& batch) { read(batch, false); }
  // False: what ended before would not be kept.
  bool wants_rows_from(int64_t before_us) const;

  struct Result {
    std::vector<Json> rows;
    int64_t total = 0;  // tasks that match, also those beyond the limit
  };
  Result rows();
  // Of what is chosen, the newest `limit`: {"summary": [...] (lineage.h), "total_tasks", ...}.
  Json lineage();
  // Tasks that match, by all that metrics tell of them.
  struct Kind {
    std::string name, state, job_hex;
    bool is_retry = false;
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  std::map<Kind, int64_t> kinds();
  // Actors that run a method, as far as add_live() told. Before anything that takes what lives.
  std::set<ActorId> busy_actors() const;
  // {"summary": {name: {func_or_class_name, type, state_counts}}, "total_tasks", ...} over all that
  // match.
  Json summary();

 private:
  using Key = std::pair<TaskId, uint32_t>;  // an attempt
  struct View;
  struct Kept {
    Json row;
    int64_t at_us = 0;
  };
  struct Texts {
    std::string node, worker;  // what a View of a live task points into
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
  std::set<std::pair<int64_t, Key>> by_time_;  // of kept_, oldest first
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
