#include "observability/state/query.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "common/base/clock.h"
#include "common/proto/object_store.pb.h"
#include "observability/events/task_texts.h"
#include "observability/metrics/prometheus.h"
#include "observability/state/cluster_events.h"
#include "observability/state/groups.h"
#include "observability/state/history.h"
#include "observability/state/lookups.h"
#include "observability/state/sources.h"
#include "observability/state/task_query.h"

namespace rt::state {
namespace {

using HeadStub = proto::HeadService::Stub;
using NodeManagerStub = proto::NodeManagerService::Stub;
using WorkerStub = proto::WorkerService::Stub;

// Answers one query: holds its connections and collects what it has found.
class QueryRun {
 public:
  QueryRun(std::unique_ptr<Sources> sources, const Query& query)
      : sources_(std::move(sources)), query_(query), resource_(*find_resource(query.resource)) {}

  Result<std::vector<proto::Node>> nodes(bool alive_only) {
    proto::GetNodesRequest request;
    request.set_alive_only(alive_only);
    RT_ASSIGN(auto reply, sources_->ask_head(&HeadStub::GetNodes, request));
    return std::vector<proto::Node>(std::make_move_iterator(reply.mutable_nodes()->begin()),
                                    std::make_move_iterator(reply.mutable_nodes()->end()));
  }

  Result<std::vector<proto::ActorInfo>> actors() {
    proto::ListActorsRequest request;
    request.set_all_namespaces(true);
    RT_ASSIGN(auto reply, sources_->ask_head(&HeadStub::ListActors, request));
    return std::vector<proto::ActorInfo>(std::make_move_iterator(reply.mutable_actors()->begin()),
                                         std::make_move_iterator(reply.mutable_actors()->end()));
  }

  Result<std::vector<proto::GroupInfo>> groups() {
    RT_ASSIGN(auto reply, sources_->ask_head(&HeadStub::ListGroups, proto::Empty()));
    return std::vector<proto::GroupInfo>(std::make_move_iterator(reply.mutable_groups()->begin()),
                                         std::make_move_iterator(reply.mutable_groups()->end()));
  }

  static std::vector<Sources::Place> places_of(const std::vector<proto::Node>& nodes) {
    std::vector<Sources::Place> places;
    for (const auto& node : nodes) places.push_back(Sources::place_of(node));
    return places;
  }

  struct Found {
    proto::ProcessInfo process;
    proto::Node node;
  };
  Result<std::vector<Found>> processes() {
    RT_ASSIGN(auto alive, nodes(true));
    std::vector<Found> found;
    sources_->ask_each(places_of(alive), &NodeManagerStub::ListProcesses,
                       [&](size_t at, const proto::ProcessesReply& reply) {
                         for (const auto& process : reply.processes()) {
                           if (process.pid() > 0) found.push_back({process, alive[at]});
                         }
                       });
    return found;
  }

  // Asks every living worker and driver that has a socket.
  template <class Method, class OnReply>
  Status ask_processes(Method method, OnReply on_reply) {
    RT_ASSIGN(auto found, processes());
    std::vector<Sources::Place> places;
    for (const auto& [process, node] : found) {
      if (!process.alive() || process.socket_path().empty()) continue;
      places.push_back(
          {{net::Address::tcp(node.ip(), node.port()), "worker", to_hex(process.worker_id())},
           fmt::format("process {} on {}", process.pid(), node.ip()),
           true});
    }
    sources_->ask_each(places, method, [&](size_t, const auto& reply) { on_reply(reply); });
    return {};
  }

  Result<std::vector<Json>> rows();
  // Selects tasks: live ones first, then those of the history. Fills `census` if it is given.
  Result<TaskQuery> tasks(int64_t limit, Census* census = nullptr);
  Result<Answer> list_tasks();
  Result<Answer> list_rows();
  Answer listed(int64_t total, int64_t filtered, Json rows) const;
  Result<Answer> summarize_actors();
  Result<Answer> summarize_objects();
  Result<Answer> summarize_groups();

  Json warning() const {
    if (sources_->missing().empty()) return nullptr;
    std::string text =
        fmt::format("{} of the sources of {} did not answer, the answer lacks what they have: ",
                    sources_->missing().size(), resource_.name);
    for (size_t i = 0; i < sources_->missing().size() && i < 10; ++i)
      text += (i ? "; " : "") + sources_->missing()[i];
    return text;
  }
  // Says how many events of tasks the history lacks, and why, and what processes did not list.
  Json notes() const {
    Json all = Json::array();
    if (unlisted_ > 0)
      all.push_back(
          fmt::format("{} {} are not in this answer: each process lists some thousands, "
                      "and only counts the others",
                      unlisted_, resource_.name));
    if (notes_.dropped > 0) {
      all.push_back(fmt::format(
          "{} events of tasks are not in the history: the oldest make room for new ones (setting "
          "task_events_max_bytes, or a full disk of the head), and some may have had no way there "
          "(a process was killed before it sent them, task_events_buffer, or the head's log says "
          "why)",
          notes_.dropped));
    }
    if (notes_.unreadable > 0)
      all.push_back(
          fmt::format("{} events of tasks in the history cannot be read", notes_.unreadable));
    return all.empty() ? Json() : all;
  }
  Sources& sources() { return *sources_; }

 private:
  std::unique_ptr<Sources> sources_;
  const Query& query_;
  const Resource& resource_;
  HistoryNotes notes_;
  int64_t unlisted_ = 0;  // Live tasks or references that processes have and did not list.
};

Result<std::vector<Json>> QueryRun::rows() {
  std::vector<Json> rows;
  const std::string& name = resource_.name;
  if (name == "nodes") {
    RT_ASSIGN(auto all, nodes(false));
    for (const auto& node : all) rows.push_back(node_row(node));
  } else if (name == "actors") {
    RT_ASSIGN(auto all, actors());
    for (const auto& actor : all) rows.push_back(actor_row(actor));
  } else if (name == "jobs") {
    RT_ASSIGN(auto jobs, all_jobs(*sources_));
    rows = job_rows(jobs);
  } else if (name == "workers") {
    RT_ASSIGN(auto found, processes());
    for (const auto& [process, node] : found) rows.push_back(worker_row(process, node));
  } else if (name == "objects") {
    RT_TRY(ask_processes(&WorkerStub::ListObjects, [&](const proto::ObjectRecords& reply) {
      for (const auto& object : reply.objects()) rows.push_back(object_row(object, reply));
      unlisted_ += reply.total() - reply.objects_size();
    }));
  } else if (name == "cluster_events") {
    RT_ASSIGN(auto all_nodes, nodes(false));
    RT_ASSIGN(auto all_actors, actors());
    RT_ASSIGN(auto jobs, sources_->ask_head(&HeadStub::GetJobs, proto::Empty()));
    RT_ASSIGN(auto all_groups, groups());
    for (const auto& event : cluster_events(all_nodes, all_actors, all_groups, jobs))
      rows.push_back(cluster_event_row(event));
  } else if (name == "runtime_envs") {
    RT_ASSIGN(auto alive, nodes(true));
    sources_->ask_each(places_of(alive), &NodeManagerStub::ListRuntimeEnvs,
                       [&](size_t at, const proto::RuntimeEnvsReply& reply) {
                         for (const auto& env : reply.runtime_envs())
                           rows.push_back(runtime_env_row(env, alive[at]));
                       });
  } else if (name == "placement_groups") {
    proto::GetSnapshotRequest request;
    request.set_groups(true);
    request.mutable_nodes()->set_alive_only(true);
    RT_ASSIGN(auto both, sources_->ask_head(&HeadStub::GetSnapshot, request));
    const NodesById by_id = nodes_by_id(both.nodes().nodes());
    for (const auto& group : both.groups().groups())
      rows.push_back(group_row(group, by_id, query_.detail));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Json& a, const Json& b) { return a[resource_.id] < b[resource_.id]; });
  return rows;
}

Result<Answer> QueryRun::list_rows() {
  RT_ASSIGN(auto all, rows());
  Json result = Json::array();
  int64_t filtered = 0;
  if (!all.empty()) {
    RT_ASSIGN(Filters filters, Filters::bind(resource_, query_.filters));
    for (Json& row : all) {
      if (!filters.match([&](int column) { return field_of(row, resource_, column); })) continue;
      if (++filtered <= query_.limit)
        result.push_back(shown(std::move(row), resource_, query_.detail));
    }
  }
  return listed(static_cast<int64_t>(all.size()), filtered, std::move(result));
}

Answer QueryRun::listed(int64_t total, int64_t filtered, Json rows) const {
  Answer answer{{{"total", total},
                 {"num_filtered", filtered},
                 {"num_after_truncation", rows.size()},
                 {"result", nullptr},
                 {"partial_failure_warning", warning()},
                 {"warnings", notes()}}};
  answer.json["result"] = std::move(rows);
  return answer;
}

Result<TaskQuery> QueryRun::tasks(int64_t limit, Census* census) {
  TaskSelection selection;
  selection.by_kind = census != nullptr;
  selection.limit = limit;
  auto bound = Filters::bind(resource_, query_.filters);
  if (bound) selection.filters = *bound;
  std::string job =
      selection.filters.required("job_id") ? from_hex(*selection.filters.required("job_id")) : "";
  RT_ASSIGN(auto all_actors, actors());
  for (const auto& actor : all_actors) {
    if (!actor.spec().name().empty())
      selection.actor_names[ActorId::from_binary(actor.spec().actor_id())] = actor.spec().name();
  }
  TaskQuery query(std::move(selection));
  bool any = false;
  // Actors that wait for their arguments or for a node: no process has the task of their
  // constructor yet.
  for (const auto& actor : all_actors) {
    const bool unready = actor.state() == proto::ACTOR_DEPENDENCIES_UNREADY;
    if (!unready && actor.state() != proto::ACTOR_PENDING &&
        actor.state() != proto::ACTOR_RESTARTING)
      continue;
    proto::TaskRecord record;
    record.set_task_id(make_task_id(static_cast<uint64_t>(actor.epoch()),
                                    ActorId::from_binary(actor.spec().actor_id()))
                           .binary());
    record.set_kind(proto::TaskRecord::ACTOR_CREATION);
    describe(actor.spec().creation(), &record);
    record.set_function(actor.spec().class_name() + ".__init__");
    record.set_state(unready ? proto::TaskRecord::PENDING_ARGS_AVAIL
                             : proto::TaskRecord::PENDING_NODE_ASSIGNMENT);
    record.set_parent_task_id(actor.spec().parent_task_id());
    record.set_created_us(actor.spec().created_us());
    query.add_live(record);
    any = true;
  }
  if (!query_.exclude_driver) {
    RT_ASSIGN(auto jobs, sources_->ask_head(&HeadStub::GetJobs, proto::Empty()));
    for (const auto& one : jobs.jobs()) query.add_driver(one);
    any |= jobs.jobs_size() > 0;
  }
  const int64_t asked_us = wall_now_us();
  RT_TRY(ask_processes(&WorkerStub::ListTasks, [&](const proto::TaskRecords& reply) {
    for (const auto& record : reply.tasks()) query.add_live(record);
    unlisted_ += reply.total() - reply.tasks_size();
    any |= reply.tasks_size() > 0;
  }));
  if (census) {
    census->busy_actors = query.busy_actors();
    census->actors = std::move(all_actors);
  }
  RT_TRY(read_history(*sources_, job, asked_us, &query, &notes_));
  any |= notes_.any;
  if (any && !bound) return bound.error();
  return query;
}

Result<Answer> QueryRun::list_tasks() {
  RT_ASSIGN(TaskQuery chosen, tasks(query_.limit));
  TaskQuery::Result found = chosen.rows();
  Json result = Json::array();
  for (Json& row : found.rows) result.push_back(shown(std::move(row), resource_, query_.detail));
  return listed(found.total, found.total, std::move(result));
}

Result<Answer> QueryRun::summarize_actors() {
  RT_ASSIGN(auto all, actors());
  std::map<std::string, std::map<std::string, int64_t>> classes;
  for (const auto& actor : all) {
    Json row = actor_row(actor);
    ++classes[row["class_name"]][row["state"]];
  }
  Json summary = Json::object();
  for (const auto& [name, states] : classes)
    summary[name] = {{"class_name", name}, {"state_counts", states}};
  return Answer{{{"summary", summary}, {"total_actors", all.size()}, {"summary_by", "class"}}};
}

Result<Answer> QueryRun::summarize_groups() {
  RT_ASSIGN(auto all, groups());
  std::map<std::string, std::map<std::string, int64_t>> strategies;
  int64_t bundles = 0;
  for (const auto& group : all) {
    ++strategies[strategy_name(group.spec())][group_state_name(group.state())];
    if (group.state() != proto::GROUP_REMOVED) bundles += group.spec().bundles_size();
  }
  Json summary = Json::object();
  for (const auto& [name, states] : strategies)
    summary[name] = {{"strategy", name}, {"state_counts", states}};
  return Answer{{{"summary", summary},
                 {"total_placement_groups", all.size()},
                 {"total_bundles", bundles},
                 {"summary_by", "strategy"}}};
}

// An object is counted once for each process that refers to it, as in the list of objects.
Result<Answer> QueryRun::summarize_objects() {
  struct Site {
    int64_t objects = 0, bytes = 0;
    std::set<std::string> workers, nodes;
    std::map<std::string, int64_t> states, attempts, references;
  };
  constexpr double kMegabyte = 1024.0 * 1024.0;
  std::map<std::string, Site> sites;
  RT_ASSIGN(auto all, rows());
  int64_t bytes = 0;
  bool recorded = false;
  for (const Json& row : all) {
    Site& site = sites[row["call_site"]];
    recorded |= row["call_site"] != "disabled";
    int64_t size = std::max<int64_t>(0, row["object_size"].get<int64_t>());
    ++site.objects;
    site.bytes += size;
    bytes += size;
    site.workers.insert(
        fmt::format("{} {}", row["ip"].get<std::string>(), row["pid"].get<int64_t>()));
    site.nodes.insert(row["ip"]);
    ++site.states[row["task_status"]];
    ++site.attempts[std::to_string(row["attempt_number"].get<int64_t>())];
    ++site.references[row["reference_type"]];
  }
  Json summary = Json::object();
  for (const auto& [name, site] : sites) {
    summary[name] = {{"total_objects", site.objects},
                     {"total_size_mb", static_cast<double>(site.bytes) / kMegabyte},
                     {"total_num_workers", site.workers.size()},
                     {"total_num_nodes", site.nodes.size()},
                     {"task_state_counts", site.states},
                     {"task_attempt_number_counts", site.attempts},
                     {"ref_type_counts", site.references}};
  }
  return Answer{{{"summary", summary},
                 {"total_objects", all.size()},
                 {"total_size_mb", static_cast<double>(bytes) / kMegabyte},
                 {"callsite_enabled", recorded},
                 {"summary_by", "callsite"}}};
}

Result<QueryRun> ask(const Cluster& cluster, const Query& query) {
  if (!find_resource(query.resource))
    return make_error(Code::kInvalid,
                      fmt::format("there is no resource '{}' in the state API", query.resource));
  if (query.limit < 0 || query.limit > kMaxLimit) {
    return make_error(
        Code::kInvalid,
        fmt::format(
            "Given limit {} exceeds the supported limit {}. Use a lower limit, of 0 at least",
            query.limit, kMaxLimit));
  }
  RT_ASSIGN(auto sources,
            Sources::connect(cluster.head_address, cluster.token,
                             std::max<int64_t>(query.timeout_us, 1'000'000), cluster.connect_us));
  return QueryRun(std::move(sources), query);
}

}  // namespace

Result<Answer> list(const Cluster& cluster, const Query& query) {
  RT_ASSIGN(QueryRun run, ask(cluster, query));
  return query.resource == "tasks" ? run.list_tasks() : run.list_rows();
}

Result<Answer> summarize(const Cluster& cluster, const Query& query) {
  RT_ASSIGN(QueryRun run, ask(cluster, query));
  Json summary;
  if (query.resource == "tasks") {
    RT_ASSIGN(TaskQuery chosen, run.tasks(query.by_lineage ? kMaxLimit : 0));
    summary = query.by_lineage ? chosen.lineage() : chosen.summary();
  } else if (query.resource == "actors") {
    RT_ASSIGN(auto answer, run.summarize_actors());
    summary = std::move(answer.json);
  } else if (query.resource == "objects") {
    RT_ASSIGN(auto answer, run.summarize_objects());
    summary = std::move(answer.json);
  } else if (query.resource == "placement_groups") {
    RT_ASSIGN(auto answer, run.summarize_groups());
    summary = std::move(answer.json);
  } else {
    return make_error(
        Code::kInvalid,
        fmt::format("there is no summary of {}: there are those of tasks, actors, objects and "
                    "placement groups",
                    query.resource));
  }
  for (const Json& note : run.notes()) summary["warnings"].push_back(note);
  summary["partial_failure_warning"] = run.warning();
  return Answer{std::move(summary)};
}

Result<Census> census(const Cluster& cluster, int64_t timeout_us) {
  Query query{"tasks"};
  query.timeout_us = timeout_us;
  RT_ASSIGN(QueryRun run, ask(cluster, query));
  Census census;
  RT_ASSIGN(TaskQuery tasks, run.tasks(0, &census));
  for (auto& [kind, count] : tasks.kinds())
    census.tasks.push_back({kind.name, kind.state, kind.job_hex, kind.is_retry, count});
  return census;
}

Result<std::vector<proto::Node>> nodes(const Cluster& cluster, int64_t timeout_us) {
  Query query{"nodes"};
  query.timeout_us = timeout_us;
  RT_ASSIGN(QueryRun run, ask(cluster, query));
  return run.nodes(false);
}

namespace {
Json holder_json(const proto::StoreHolder& holder) {
  return {{"worker_id", to_hex(holder.worker_id())},
          {"pid", holder.pid() > 0 ? Json(holder.pid()) : Json()},
          {"bytes", holder.bytes()},
          {"objects", holder.objects()}};
}
}  // namespace

Result<Answer> store_stats(const Cluster& cluster, int64_t timeout_us,
                           std::vector<std::string>* missing) {
  Query query{"nodes"};
  query.timeout_us = timeout_us;
  RT_ASSIGN(QueryRun run, ask(cluster, query));
  RT_ASSIGN(auto nodes, run.nodes(true));
  std::vector<Sources::Place> places;
  Json stores = Json::array();
  for (const auto& node : nodes) {
    places.push_back(Sources::place_of(node, "store", "the object store of node"));
    stores.push_back({{"node_id", to_hex(node.node_id())},
                      {"node_ip", node.ip()},
                      {"used", nullptr},
                      {"capacity", nullptr},
                      {"objects", nullptr},
                      {"holders", Json::array()}});
  }
  run.sources().ask_each(places, &proto::ObjectStoreService::Stub::GetStats,
                         [&](size_t at, const proto::StoreStats& stats) {
                           stores[at]["used"] = stats.used();
                           stores[at]["capacity"] = stats.capacity();
                           stores[at]["objects"] = stats.num_objects();
                           for (const proto::StoreHolder& holder : stats.holders())
                             stores[at]["holders"].push_back(holder_json(holder));
                         });
  *missing = run.sources().missing();
  return Answer{std::move(stores)};
}

Result<std::string> metrics_text(const Cluster& cluster, const std::string& version,
                                 int64_t timeout_us, std::vector<std::string>* missing) {
  Query query{"nodes"};
  query.timeout_us = timeout_us;
  RT_ASSIGN(QueryRun run, ask(cluster, query));
  RT_ASSIGN(auto nodes, run.nodes(true));
  std::vector<metrics::NodeMetrics> found;
  run.sources().ask_each(
      QueryRun::places_of(nodes), &NodeManagerStub::GetMetrics,
      [&](size_t at, const proto::MetricsReply& reply) {
        const std::string& session = nodes[at].session_dir();
        found.push_back({session.substr(session.rfind('/') + 1), version, nodes[at].ip(), reply});
      });
  *missing = run.sources().missing();
  return metrics::prometheus_text(found);
}

}  // namespace rt::state
