#include "observability/state/logs.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "common/base/ids.h"
#include "common/base/log_names.h"
#include "observability/state/log_position.h"

namespace rt::state {
namespace {

using HeadStub = proto::HeadService::Stub;
using NodeManagerStub = proto::NodeManagerService::Stub;

// How long task events may take from a process to the head's history.
constexpr std::chrono::milliseconds kEventsTravel{600};

std::string described(const std::string& node_id, const std::string& node_ip) {
  return node_id.empty() ? "address " + node_ip : "id " + node_id;
}

}  // namespace

Result<std::unique_ptr<LogSource>> LogSource::connect(const Cluster& cluster, int64_t timeout_us) {
  RT_ASSIGN(auto sources,
            Sources::connect(cluster.head_address, cluster.token, timeout_us, cluster.connect_us));
  return std::unique_ptr<LogSource>(new LogSource(cluster, std::move(sources), timeout_us));
}

Status LogSource::connect_again() {
  RT_ASSIGN(sources_, Sources::connect(cluster_.head_address, cluster_.token, timeout_us_,
                                       cluster_.connect_us));
  return {};
}

Result<std::vector<proto::Node>> LogSource::nodes() {
  sources_->allow(timeout_us_);
  RT_ASSIGN(auto reply, sources_->ask_head(&HeadStub::GetNodes, proto::GetNodesRequest()));
  std::vector<proto::Node> nodes(reply.nodes().begin(), reply.nodes().end());
  std::stable_sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
    return a.alive() && a.is_head() && !(b.alive() && b.is_head());
  });
  return nodes;
}

Result<proto::Node> LogSource::node(const std::string& node_id, const std::string& node_ip) {
  if (node_id.empty() && node_ip.empty())
    return make_error(
        Code::kInvalid,
        "Both node id and node ip are not provided: name the node whose logs are wanted");
  RT_ASSIGN(auto all, nodes());
  const proto::Node* found = nullptr;
  for (const proto::Node& node : all) {
    bool fits = node_id.empty() ? node.ip() == node_ip : to_hex(node.node_id()) == node_id;
    if (fits && (!found || (node.alive() && !found->alive()))) found = &node;
  }
  if (!found)
    return make_error(Code::kNotFound, fmt::format("There is no node with {} in this cluster",
                                                   described(node_id, node_ip)));
  if (!found->alive())
    return make_error(Code::kNodeDied,
                      fmt::format("The node with {} is dead ({}): nobody there can read its logs",
                                  described(node_id, node_ip), found->death_message()));
  return *found;
}

Result<std::vector<proto::LogFile>> LogSource::files(const proto::Node& node,
                                                     const std::string& glob) {
  proto::ListLogFilesRequest request;
  request.set_glob(glob);
  sources_->allow(timeout_us_);
  RT_ASSIGN(auto reply,
            sources_->ask_one(Sources::place_of(node), &NodeManagerStub::ListLogFiles, request));
  return std::vector<proto::LogFile>(reply.files().begin(), reply.files().end());
}

LogTail LogSource::tail(const proto::Node& node, const std::string& name, int64_t lines,
                        bool count_markers, bool find_writer) {
  auto read = [this, place = Sources::place_of(node)](const std::string& file, int64_t offset,
                                                      int64_t max_bytes) {
    proto::ReadLogFileRequest request;
    request.set_name(file);
    request.set_offset(offset);
    request.set_max_bytes(max_bytes);
    sources_->allow(timeout_us_);
    return sources_->ask_one(place, &NodeManagerStub::ReadLogFile, request);
  };
  return LogTail(name, lines, std::move(read), count_markers,
                 find_writer && worker_log_pid(name) > 0);
}

Result<LogSource::Place> LogSource::of_worker(const proto::Node& node,
                                              const std::string& worker_hex, int64_t pid,
                                              const std::string& suffix, bool renamed_too) {
  std::string glob =
      worker_log_name(worker_hex.empty() ? "*" : worker_hex, std::to_string(pid), suffix == "err");
  RT_ASSIGN(auto current, files(node, glob));
  if (current.empty())
    return make_error(Code::kNotFound,
                      fmt::format("There is no log of a worker with pid {} on node {}", pid,
                                  to_hex(node.node_id())));
  Place place{node, {}};
  const std::string& name = current.back().name();
  if (renamed_too) {
    RT_ASSIGN(auto renamed, files(node, name + ".*"));
    std::stable_sort(renamed.begin(), renamed.end(), [&](const auto& a, const auto& b) {
      return std::atoi(a.name().c_str() + name.size() + 1) >
             std::atoi(b.name().c_str() + name.size() + 1);
    });
    for (const auto& file : renamed) place.names.push_back(file.name());
  }
  place.names.push_back(name);
  return place;
}

Status check_actor_id(const std::string& hex) {
  if (ActorId::is_valid(from_hex(hex))) return {};
  return make_error(Code::kInvalid,
                    fmt::format("'{}' is not the id of an actor: {} hexadecimal digits", hex,
                                2 * ActorId::kSize));
}

Result<LogSource::Place> LogSource::of_actor(const LogQuery& query) {
  proto::GetActorRequest request;
  RT_TRY(check_actor_id(query.actor_id));
  request.set_actor_id(from_hex(query.actor_id));
  sources_->allow(timeout_us_);
  RT_ASSIGN(auto reply, sources_->ask_head(&HeadStub::GetActor, request));
  if (!reply.found())
    return make_error(Code::kNotFound,
                      fmt::format("There is no actor with id {} in this cluster", query.actor_id));
  const proto::ActorInfo& actor = reply.actor();
  bool died = actor.state() == proto::ACTOR_DEAD;
  std::string node_id =
      to_hex(died && !actor.death().node_id().empty() ? actor.death().node_id()
                                                      : actor.address().node_id());
  int pid = actor.pid() ? actor.pid() : actor.death().pid();
  if (node_id.empty() || !pid)
    return make_error(Code::kNotFound,
                      fmt::format("The actor {} has not started on any node: there is no log of it",
                                  query.actor_id));
  RT_ASSIGN(auto where, node(node_id, ""));
  return of_worker(where, "", pid, query.suffix, false);
}

Result<LogSource::Place> LogSource::of_task(const LogQuery& query) {
  Query question{"tasks"};
  question.filters = {{"task_id", true, query.task_id},
                      {"attempt_number", true, std::to_string(query.attempt)}};
  question.timeout_us = timeout_us_;
  RT_ASSIGN(Answer answer, list(cluster_, question));
  if (answer.json["result"].empty()) {
    // The task may have ended a moment ago: its process has forgotten it, and its event is still on
    // the way to the head.
    std::this_thread::sleep_for(kEventsTravel);
    RT_ASSIGN(answer, list(cluster_, question));
  }
  const Json& rows = answer.json["result"];
  if (rows.empty())
    return make_error(Code::kNotFound, fmt::format("There is no attempt {} of a task with id {}",
                                                   query.attempt, query.task_id));
  std::string node_id = text_of(rows[0], "node_id");
  if (node_id.empty() || !rows[0]["worker_pid"].is_number())
    return make_error(
        Code::kNotFound,
        fmt::format("The task {} has not started on any worker: there is no log of it",
                    query.task_id));
  RT_ASSIGN(auto where, node(node_id, ""));
  return of_worker(where, text_of(rows[0], "worker_id"), rows[0]["worker_pid"].get<int64_t>(),
                   query.suffix, true);
}

Result<LogSource::Place> LogSource::of_job(const LogQuery& query) {
  proto::SubmittedJobRequest request;
  request.set_submission_id(query.submission_id);
  sources_->allow(timeout_us_);
  RT_ASSIGN(auto reply, sources_->ask_head(&HeadStub::GetSubmittedJob, request));
  if (reply.jobs().empty() || reply.jobs(0).node_id().empty())
    return make_error(Code::kNotFound,
                      fmt::format("The job {} has not started on any node: there is no log of it",
                                  query.submission_id));
  RT_ASSIGN(auto where, node(to_hex(reply.jobs(0).node_id()), ""));
  return Place{where, {job_log_name(query.submission_id)}};
}

Result<LogSource::Place> LogSource::find(const LogQuery& query) {
  if (query.suffix != "out" && query.suffix != "err")
    return make_error(Code::kInvalid,
                      fmt::format("suffix is '{}': it takes out or err", query.suffix));
  if (!query.actor_id.empty()) return of_actor(query);
  if (!query.task_id.empty()) return of_task(query);
  if (!query.submission_id.empty()) return of_job(query);
  if (query.filename.empty() && query.pid <= 0)
    return make_error(
        Code::kInvalid,
        "one of filename, actor_id, task_id, pid and submission_id is needed to choose a log");
  RT_ASSIGN(auto where, node(query.node_id, query.node_ip));
  if (query.pid > 0) return of_worker(where, "", query.pid, query.suffix, false);
  return Place{where, {query.filename}};
}

Result<Answer> list_logs(const Cluster& cluster, const std::string& node_id,
                         const std::string& node_ip, const std::string& glob, int64_t timeout_us) {
  if (node_id.empty() && node_ip.empty())
    return make_error(
        Code::kInvalid,
        "Both node id and node ip are not provided: name the node whose logs are wanted");
  RT_ASSIGN(auto source, LogSource::connect(cluster, timeout_us));
  RT_ASSIGN(auto node, source->node(node_id, node_ip));
  RT_ASSIGN(auto files, source->files(node, glob));
  Json found = Json::object();
  for (const auto& file : files)
    found[log_category(file.name())].push_back(file.name() + (file.is_directory() ? "/" : ""));
  return Answer{std::move(found)};
}

Status LogReading::open(const Cluster& cluster, const LogQuery& query) {
  query_ = query;
  RT_ASSIGN(source_, LogSource::connect(cluster, query.timeout_us));
  if (!query.position.empty()) return open_at_position();
  RT_ASSIGN(place_, source_->find(query));
  if (!query.task_id.empty()) task_.emplace(query.task_id, query.attempt);
  if (query.for_people) markers_.emplace();
  if (query.without_colours) colours_.emplace();
  for (const std::string& name : place_.names)
    tails_.push_back(
        source_->tail(place_.node, name, task_ ? -1 : query.lines, !query.for_people, false));
  RT_TRY(tails_.back().begin());
  cut_ = !task_ && tails_.back().cut();
  return {};
}

Status LogReading::open_at_position() {
  RT_ASSIGN(auto from, LogPosition::parse(query_.position));
  RT_ASSIGN(auto node, source_->node(from.node_id, ""));
  place_ = {node, {from.name}};
  if (!query_.task_id.empty()) task_.emplace(query_.task_id, query_.attempt, from.inside);
  if (query_.for_people) markers_.emplace(from.inside);
  if (query_.without_colours) colours_.emplace();
  tails_.push_back(source_->tail(node, from.name, -1, !query_.for_people, false));
  tails_.back().begin_at(from.inode, from.offset);
  file_ = tails_.size();
  begun_ = true;
  return {};
}

std::string LogReading::position() const {
  const LogTail& tail = tails_.back();
  const auto held = static_cast<int64_t>(task_ ? task_->held() : markers_ ? markers_->held() : 0);
  const bool inside = task_ ? task_->inside() : markers_ && markers_->inside();
  return LogPosition{to_hex(place_.node.node_id()), tail.name(), tail.inode(),
                     std::max<int64_t>(0, tail.offset() - held), inside}
      .text();
}

Result<std::string> LogReading::piece(size_t most_bytes) {
  std::string all;
  // A position refers to the last file, so a task's lines in rotated files are read to their end
  // first, whatever their size.
  while (all.size() < most_bytes || file_ < (task_ ? tails_.size() : 0)) {
    RT_ASSIGN(std::string some, next());
    if (some.empty()) break;
    all += some;
  }
  return all;
}

std::string LogReading::filtered(std::string data) {
  if (task_)
    data = task_->feed(data);
  else if (markers_)
    data = markers_->feed(data);
  return colours_ ? colours_->feed(data) : data;
}

std::string LogReading::filtered_rest() {
  std::string rest = task_ ? task_->finish() : markers_ ? markers_->finish() : "";
  return colours_ ? colours_->feed(rest) : rest;
}

void LogReading::keep(std::string lines) {
  size_t size = lines.size();
  kept_ = last_lines(std::move(lines), query_.lines);
  cut_ = cut_ || kept_.size() < size;
}

// With a limit of lines everything is read before anything is returned, because only the end tells
// which lines are the last ones.
Result<std::string> LogReading::next_of_task() {
  while (file_ < tails_.size()) {
    RT_ASSIGN(std::string piece, tails_[file_].next());
    if (piece.empty()) {
      ++file_;
      continue;
    }
    kept_ += filtered(std::move(piece));
    if (query_.lines >= 0) {
      keep(std::move(kept_));
    } else if (!kept_.empty()) {
      break;
    }
  }
  if (file_ == tails_.size() && !query_.follow) keep(kept_ + filtered_rest());
  return std::exchange(kept_, {});
}

Result<std::string> LogReading::next() {
  RT_ASSIGN(std::string piece, next_piece());
  if (piece.empty() || std::exchange(begun_, true) || !cut_ || !query_.for_people ||
      query_.lines <= 0)
    return piece;
  return fmt::format("--- The last {}: --tail -1 shows all. ---\n",
                     query_.lines == 1 ? "line" : fmt::format("{} lines", query_.lines)) +
         piece;
}

Result<std::string> LogReading::next_piece() {
  if (task_ && file_ < tails_.size()) {
    RT_ASSIGN(std::string lines, next_of_task());
    if (!lines.empty()) return lines;
  }
  for (;;) {
    RT_ASSIGN(std::string piece, tails_.back().next());
    if (piece.empty()) return query_.follow ? std::string() : filtered_rest();
    std::string shown = filtered(std::move(piece));
    if (!shown.empty()) return shown;
  }
}

Status LogReading::run(const TakeLog& take, const WaitLog& wait) {
  for (;;) {
    RT_ASSIGN(std::string piece, next());
    if (piece.empty() ? !query_.follow || !wait(query_.interval_us) : !take(piece)) return {};
  }
}

}  // namespace rt::state
