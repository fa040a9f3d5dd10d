// Lists and reads the log files of all nodes, also while they grow. The node-managers answer the
// requests; over_http.h does the same through the HTTP interface. All calls block; none of the
// classes is thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/proto/head.pb.h"
#include "observability/state/log_tail.h"
#include "observability/state/query.h"
#include "observability/state/sources.h"

namespace rt::state {

// kInvalid unless `hex` has the form of an actor's id.
Status check_actor_id(const std::string& hex);

struct LogQuery {
  // The node, by its id in hex or its address. Not needed for an actor, a task or a job. If several
  // nodes have had the address, the living one is chosen.
  std::string node_id, node_ip;
  // The log, by exactly one of these; ids are in hex, but for the submission id.
  std::string filename, actor_id, task_id, submission_id;
  int64_t pid = 0;
  int64_t attempt = 0;         // The attempt of the task.
  int64_t lines = 1000;        // How many last lines; -1 for all.
  std::string suffix = "out";  // Which of a worker's files: "out" or "err".
  bool follow = false;
  bool without_colours = false;
  // Leaves out marker lines, which then do not count as lines. If earlier lines are not shown, a
  // first line says so.
  bool for_people = false;
  int64_t interval_us = 500'000;    // The pause between two reads while following.
  int64_t timeout_us = 30'000'000;  // The limit to find the file, and for each read.
  std::string position;  // Where to go on: position() of an earlier LogReading of the same query.
};

// Returns {"worker_out": ["name", ...], ...}; names of directories end in "/". Returns kInvalid if
// no node is named, kNotFound if there is no such node, and kNodeDied if it is dead.
Result<Answer> list_logs(const Cluster& cluster, const std::string& node_id,
                         const std::string& node_ip, const std::string& glob, int64_t timeout_us);

// Receives a piece of a log; returns false to stop reading.
using TakeLog = std::function<bool(std::string_view)>;
// Sleeps for `us` microseconds; returns false to stop following.
using WaitLog = std::function<bool(int64_t us)>;
// Access to any number of files, over one connection to the head and one to each node.
class LogSource {
 public:
  static Result<std::unique_ptr<LogSource>> connect(const Cluster& cluster, int64_t timeout_us);

  // Whether the connection to the head is broken. connect_again() replaces all connections and
  // fails as connect() does; existing tails stay valid and go on where they are.
  bool head_is_lost() const { return !sources_->head_is_open(); }
  Status connect_again();
  // All nodes, living and dead. The head's node comes first.
  Result<std::vector<proto::Node>> nodes();
  // Returns kInvalid if neither id nor address is given, kNotFound if there is no such node, and
  // kNodeDied if it is dead, so that nobody there can read its logs.
  Result<proto::Node> node(const std::string& node_id, const std::string& node_ip);
  // The files in the node's `logs` directory whose names match `glob`.
  Result<std::vector<proto::LogFile>> files(const proto::Node& node, const std::string& glob);
  // A LogTail that reads through this source, which must outlive it. Only files of workers have a
  // writer to find.
  LogTail tail(const proto::Node& node, const std::string& name, int64_t lines,
               bool count_markers = true, bool find_writer = true);

  struct Place {
    proto::Node node;
    // Names of files, the oldest first. There are several only for a task whose worker's log has
    // been rotated.
    std::vector<std::string> names;
  };
  // Finds the node and the files of a query. kInvalid if the query does not say which log.
  Result<Place> find(const LogQuery& query);

 private:
  LogSource(Cluster cluster, std::unique_ptr<Sources> sources, int64_t timeout_us)
      : cluster_(std::move(cluster)), sources_(std::move(sources)), timeout_us_(timeout_us) {}
  Result<Place> of_actor(const LogQuery& query);
  Result<Place> of_task(const LogQuery& query);
  Result<Place> of_job(const LogQuery& query);
  Result<Place> of_worker(const proto::Node& node, const std::string& worker_hex, int64_t pid,
                          const std::string& suffix, bool renamed_too);

  Cluster cluster_;
  std::unique_ptr<Sources> sources_;
  int64_t timeout_us_;
};

// Finds one log and reads it: open() first, then either next(), run() or piece().
class LogReading {
 public:
  // Returns kInvalid if the query does not say which log, kNotFound if there is no such log, and
  // kNodeDied if its node has died.
  Status open(const Cluster& cluster, const LogQuery& query);
  // Returns the next piece. An empty one means the end of the log, or, when following, that there
  // is nothing new at the moment.
  Result<std::string> next();
  // Passes the log to `take` in pieces: up to its end, or, when following, until `take` or `wait`
  // returns false or the node cannot be asked any more.
  Status run(const TakeLog& take, const WaitLog& wait);
  // Returns what has been written since the query's position, or from the first requested line on:
  // about `most_bytes` at most, without waiting. Empty if there is nothing new.
  Result<std::string> piece(size_t most_bytes);
  // The position behind what piece() has returned. State of the colour filter is not part of it: if
  // a colour code is cut there, the rest of it is shown.
  std::string position() const;

 private:
  Status open_at_position();
  Result<std::string> next_piece();
  // The next piece of what the task had written before open(), in all files of place_.
  Result<std::string> next_of_task();
  void keep(std::string lines);
  std::string filtered(std::string data);
  std::string filtered_rest();

  LogQuery query_;
  std::unique_ptr<LogSource> source_;
  LogSource::Place place_;
  std::vector<LogTail> tails_;  // One for each of place_.names.
  size_t file_ = 0;             // The index of the tail being read; only the last one is followed.
  std::string kept_;            // For a task: its last lines so far.
  std::optional<TaskLines> task_;
  std::optional<WithoutMarkers> markers_;
  std::optional<WithoutColours> colours_;
  bool cut_ = false, begun_ = false;
};

// Opens a log and runs through it; see LogReading.
inline Status read_log(const Cluster& cluster, const LogQuery& query, const TakeLog& take,
                       const WaitLog& wait) {
  LogReading reading;
  RT_TRY(reading.open(cluster, query));
  return reading.run(take, wait);
}

}  // namespace rt::state
