// Records of what this process does: the events of tasks, for the history at the head, and the
// metrics of the program. Both are collected here and go to this node's node-manager, events some
// times a second, metrics at most once a second. What is collected while there is no connection to
// it waits, and is lost with the process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/shared_counters.h"
#include "common/net/loop.h"
#include "common/proto/node_manager.pb.h"
#include "common/rpc/connection.h"
#include "observability/events/task_event_writer.h"
#include "worker/core/task.h"
#include "worker/service/lock.h"
#include "worker/worker.h"

namespace rt::worker {

class ExecutingTaskImpl;
struct ExecTemplate;
struct Link;

class Recorder {
 public:
  // The references must outlive this object. `node_manager` is null until the connection is made
  // and after its end.
  Recorder(const Options& options, const Context& context, net::Loop& loop,
           const std::shared_ptr<rpc::Connection>& node_manager);

  // Counts the events in a counter that others read, so that they know how many are lost when this
  // process is killed.
  void count_in(SharedCounter counter) REQUIRES(worker_mutex) { recorded_ = std::move(counter); }
  // Nothing is recorded any more.
  void close() REQUIRES(worker_mutex) { closed_ = true; }

  // Whether submissions are recorded, too: RAY_PROFILING is set, to any value.
  bool profiles() const { return profiles_; }

  // Records the end of a task that this process executed; `actor` is the actor that this process
  // is, or null.
  void task_ended(const ExecutingTaskImpl& task, const proto::ActorSpec* actor)
      REQUIRES(worker_mutex);
  // Records, as the owner, a failed task whose end no process can record. `end` tells of the
  // process that had the task, if one had.
  void task_failed(const Task& task, const TaskId& parent, const proto::ErrorValue* error,
                   const proto::ExitInfo* end) REQUIRES(worker_mutex);
  // Records a span on behalf of `task`, which is `running` if this process executes it. A span that
  // is too large is counted as dropped.
  void span(const TaskId& task, const ExecutingTaskImpl* running, const std::string& type,
            int64_t start_us, int64_t end_us, const std::string& extra) REQUIRES(worker_mutex);

  // The program's metrics have new values.
  void metrics_changed() REQUIRES(worker_mutex);
  // Sends events and metrics, because this process ends or somebody asks for them.
  void flush() REQUIRES(worker_mutex);

 private:
  // Tasks of one kind have events that differ in their times only.
  struct Kind {
    const ExecTemplate* function = nullptr;
    const Link* link = nullptr;
    TaskId parent;
    int attempt = 0;
    friend bool operator==(const Kind&, const Kind&) = default;
  };

  bool is_connected() const REQUIRES(worker_mutex) {
    return node_manager_ && node_manager_->is_open();
  }
  // Counts an event, and says whether there is room for it.
  bool may_add() REQUIRES(worker_mutex);
  void added() REQUIRES(worker_mutex);
  void flush_events() REQUIRES(worker_mutex);
  void flush_metrics() REQUIRES(worker_mutex);
  // The indexes of strings in the batch.
  uint32_t error_index(const proto::ErrorValue& error) REQUIRES(worker_mutex);
  uint32_t error_index(Bytes encoded) REQUIRES(worker_mutex);
  uint32_t parent_index(const TaskId& parent) REQUIRES(worker_mutex);
  // A null link stands for the creation of the actor that this process is.
  uint32_t owner_index(Link* link, const proto::ActorSpec* actor) REQUIRES(worker_mutex);
  // Sets what an event tells of the task's template; `display` is the function's name for people.
  void describe(const proto::TaskTemplate& spec, const std::string& display, TaskEventCommon* event)
      REQUIRES(worker_mutex);
  // The strings that all tasks of a template have in common.
  const TaskEventCommon& common_of(ExecTemplate& function) REQUIRES(worker_mutex);

  const Options& options_;
  const Context& context_;
  net::Loop& loop_;
  const std::shared_ptr<rpc::Connection>& node_manager_;
  const bool profiles_;
  bool closed_ GUARDED_BY(worker_mutex) = false;

  TaskEventWriter events_ GUARDED_BY(worker_mutex);
  // The kind of the last event, if that was the success of a task: the next one of the same kind is
  // written in short form.
  Kind last_kind_ GUARDED_BY(worker_mutex);
  // The parent in the last event, and its index among the strings of the batch.
  TaskId last_parent_ GUARDED_BY(worker_mutex);
  uint32_t last_parent_index_ GUARDED_BY(worker_mutex) = 0;
  int64_t dropped_ GUARDED_BY(worker_mutex) = 0;
  SharedCounter recorded_ GUARDED_BY(worker_mutex);  // Includes those that were dropped.
  bool event_timer_set_ GUARDED_BY(worker_mutex) = false;

  int64_t metrics_sent_us_ GUARDED_BY(worker_mutex) = 0;
  bool metrics_timer_set_ GUARDED_BY(worker_mutex) = false;
};

}  // namespace rt::worker
