// Log files of every node, wherever it is: their names, and their contents as they grow. What is
// asked goes to the node-managers. (Over HTTP: over_http.h.)
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/proto/head.pb.h"
#include "common/state/log_tail.h"
#include "common/state/query.h"
#include "common/state/sources.h"

namespace rt::state {

struct LogQuery {
  // Where; not needed for an actor, a task or a job. Of several nodes at one address the living
  // one.
  std::string node_id, node_ip;  // hex; literal
  // What: one of these.
  std::string filename, actor_id, task_id, submission_id;  // ids in hex
  int64_t pid = 0;
  int64_t attempt = 0;         // of the task
  int64_t lines = 1000;        // the last ones; -1: all
  std::string suffix = "out";  // of a worker's files: or "err"
  bool follow = false;
  bool without_colours = false;
  bool for_people = false;  // without markers, which do not count as lines; where lines were left
                            // out, a line says so first
  int64_t interval_us = 500'000;    // between two looks, when following
  int64_t timeout_us = 30'000'000;  // to find the file, and for each look
  std::string position;             // of an earlier LogReading of the same: go on there
};

// {"worker_out": ["name", ...], ...}; directories end in "/". kInvalid: no node is named;
// kNotFound: there is no such node.
Result<Answer> list_logs(const Cluster& cluster, const std::string& node_id,
                         const std::string& node_ip, const std::string& glob, int64_t timeout_us);

// False: the reader wants no more.
using TakeLog = std::function<bool(std::string_view)>;
// Waits that long; false: to end at once.
using WaitLog = std::function<bool(int64_t us)>;
// Several files at once, over one connection to each node.
class LogSource {
 public:
  static Result<std::unique_ptr<LogSource>> connect(const Cluster& cluster, int64_t timeout_us);

  // Its connection broke. connect_again() fails as connect() does; the tails go on where they are.
  bool head_is_lost() const { return !sources_->head_is_open(); }
  Status connect_again();
  // Alive and dead. The head's node is first.
  Result<std::vector<proto::Node>> nodes();
  // kInvalid: neither is given. kNotFound: there is none. kNodeDied: it cannot be asked any more.
  Result<proto::Node> node(const std::string& node_id, const std::string& node_ip);
  Result<std::vector<proto::LogFile>> files(const proto::Node& node, const std::string& glob);
  // As LogTail has it; only a worker's file has a writer.
  LogTail tail(const proto::Node& node, const std::string& name, int64_t lines,
               bool count_markers = true, bool find_writer = true);

  struct Place {
    proto::Node node;
    std::vector<std::string> names;  // oldest first; more than one only for a task, whose worker's
                                     // log was renamed meanwhile
  };
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

// One log, found and then read.
class LogReading {
 public:
  // Finds it. kInvalid: what is asked is not clear; kNotFound: there is no such log; kNodeDied: its
  // node has ended.
  Status open(const Cluster& cluster, const LogQuery& query);
  // The next piece. Empty: that was all, for now where the log is followed.
  Result<std::string> next();
  // Hands out the log in pieces. Without `follow` up to its end; with it until the reader or `wait`
  // ends it, or the node cannot be asked any more.
  Status run(const TakeLog& take, const WaitLog& wait);
  // What has been written since the position that was asked for, or since the first line asked for;
  // at once, about as much as `most_bytes`. Empty: nothing.
  Result<std::string> piece(size_t most_bytes);
  // Behind what piece() has handed out. (A colour code that is cut there is shown.)
  std::string position() const;

 private:
  Status go_on();
  Result<std::string> next_piece();
  // Of what a task has written so far, in as many files as that is.
  Result<std::string> next_of_task();
  void keep(std::string lines);
  std::string sift(std::string data);
  std::string sift_rest();

  LogQuery query_;
  std::unique_ptr<LogSource> source_;
  LogSource::Place place_;
  std::vector<LogTail> tails_;  // of place_.names
  size_t file_ = 0;             // which is read; the last one is followed
  std::string kept_;            // of a task: the last lines so far
  std::optional<TaskLines> task_;
  std::optional<WithoutMarkers> markers_;
  std::optional<WithoutColours> colours_;
  bool cut_ = false, begun_ = false;
};

inline Status read_log(const Cluster& cluster, const LogQuery& query, const TakeLog& take,
                       const WaitLog& wait) {
  LogReading reading;
  RT_TRY(reading.open(cluster, query));
  return reading.run(take, wait);
}

}  // namespace rt::state
