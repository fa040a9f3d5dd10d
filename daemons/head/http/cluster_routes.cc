// Views of the cluster: /nodes, /logical/actors, /api/cluster_status, /events,
// /api/component_activities, /api/v0/cluster_metadata.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/base/clock.h"
#include "common/base/environment.h"
#include "common/base/ids.h"
#include "daemons/head/http/envelope.h"
#include "daemons/head/http/last_readings.h"
#include "daemons/head/http/node_view.h"
#include "daemons/head/http/query.h"
#include "daemons/head/http/routes.h"
#include "observability/api_json/node_json.h"
#include "observability/state/cluster_events.h"
#include "observability/state/groups.h"
#include "observability/state/sources.h"
#include "observability/state/status_text.h"
#include "observability/state/usage.h"

namespace rt::head {
namespace {

using http::Call;
using HeadStub = proto::HeadService::Stub;
using NodeStub = proto::NodeManagerService::Stub;

constexpr char kInternalNamespace[] = "_ray_internal_";

// {"usage": {name: [used, total]}, "reserved": {name: [used, reserved]}}. As in Ray, what placement
// groups reserve counts as used in "usage"; "reserved" is this project's, and says what of it is.
Json usage_json(const std::vector<const proto::Node*>& nodes) {
  Json usage = Json::object(), reserved = Json::object();
  for (const auto& [name, one] : state::usage_of(nodes)) {
    usage[name] = {one.used - one.reserved_used + one.reserved, one.total};
    if (one.reserved > 0) reserved[name] = {one.reserved_used, one.reserved};
  }
  return {{"usage", std::move(usage)}, {"reserved", std::move(reserved)}};
}

// [[{"bundles": [[{"CPU": 1.0}, 4]], "strategy": "SPREAD"}, 2]]: two groups wait for nodes for four
// such bundles each.
Json group_demand_json(const proto::ClusterStatusReply& status) {
  Json demand = Json::array();
  std::map<std::string, size_t> known;
  for (const auto& group : status.pending_groups()) {
    auto [it, added] = known.try_emplace(state::homeless_text(group), demand.size());
    if (!added) {
      Json& count = demand[it->second][1];
      count = count.get<int64_t>() + 1;
      continue;
    }
    Json bundles = Json::array();
    for (const auto& shape : state::bundle_shapes(group, true))
      bundles.push_back({Json(api_json::amounts_json(shape.resources)), shape.count});
    Json one = {{"bundles", std::move(bundles)}, {"strategy", state::strategy_name(group.spec())}};
    demand.push_back({std::move(one), 1});
  }
  return demand;
}

class ClusterRoutes {
 public:
  explicit ClusterRoutes(ApiContextPtr context) : context_(std::move(context)) {}

  void nodes(Call& call) const {
    std::string view = call.query("view");
    if (view != "summary" && view != "hostNameList")
      return fail(call, 500, fmt::format("Unknown view {}", view.empty() ? "None" : view));
    auto reports = ask_nodes(view == "summary", "");
    if (!reports) return fail(call, reports.error());
    Json summary = Json::array(), resources = Json::object(), names = Json::array();
    for (const NodeReport& report : *reports) {
      if (report.node.alive()) names.push_back(report.node.hostname());
      if (view != "summary") continue;
      summary.push_back(camel_case(node_object(report)));
      resources[to_hex(report.node.node_id())] = resource_lines(report.node);
    }
    if (view != "summary")
      return succeed(call, "Node hostname list fetched.", {{"host_name_list", names}});
    // Keys that are ids must not be changed to camelCase.
    succeed(call, "Node summary fetched.",
            {{"summary", summary}, {"nodeLogicalResources", resources}}, Keys::kAsTheyAre);
  }

  void node(Call& call) const {
    auto reports = ask_nodes(true, call.parts[0]);
    if (!reports) return fail(call, reports.error());
    if (reports->empty())
      return fail(call, 404,
                  fmt::format("There is no node with id {} in this cluster", call.parts[0]));
    Json detail = camel_case(node_object(reports->front())), actors = Json::object();
    detail["workers"] = camel_case(worker_objects(reports->front()));
    auto all = ask_actors();
    if (!all) return fail(call, all.error());
    for (const auto& actor : *all) {
      if (to_hex(actor.address().node_id()) == call.parts[0])
        actors[to_hex(actor.spec().actor_id())] = camel_case(actor_object(actor));
    }
    detail["actors"] = actors;
    succeed(call, "Node details fetched.", {{"detail", detail}}, Keys::kAsTheyAre);
  }

  void actors(Call& call) const {
    std::set<std::string> wanted;
    for (std::string rest = call.query("ids"); !rest.empty();) {
      size_t comma = rest.find(',');
      wanted.insert(rest.substr(0, comma));
      rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    }
    auto all = ask_actors();
    if (!all) return fail(call, all.error());
    Json found = Json::object();
    for (const auto& actor : *all) {
      std::string id = to_hex(actor.spec().actor_id());
      if (wanted.empty() || wanted.contains(id)) found[id] = camel_case(actor_object(actor));
    }
    succeed(call, "All actors fetched.", {{"actors", found}}, Keys::kAsTheyAre);
  }

  void actor(Call& call) const {
    auto all = ask_actors();
    if (!all) return fail(call, all.error());
    for (const auto& actor : *all) {
      if (to_hex(actor.spec().actor_id()) == call.parts[0])
        return succeed(call, "Actor details fetched.", {{"detail", actor_object(actor)}});
    }
    fail(call, 404, fmt::format("There is no actor with id {} in this cluster", call.parts[0]));
  }

  void status(Call& call) const {
    auto sources = connect();
    if (!sources) return fail(call, sources.error());
    auto reply = (*sources)->ask_head(&HeadStub::GetClusterStatus, proto::Empty());
    if (!reply) return fail(call, reply.error());
    if (is_yes(call.query("format"))) {
      return succeed(call, "Got formatted cluster status.",
                     {{"autoscaling_status", nullptr},
                      {"autoscaling_error", nullptr},
                      {"cluster_status", state::status_text(*reply, false)}});
    }
    Json demands = Json::array(), active = Json::object(), failures = Json::array();
    std::vector<const proto::Node*> alive;
    for (const auto& node : reply->nodes()) {
      if (!node.alive()) continue;
      active["node_" + to_hex(node.node_id())] = 1;
      alive.push_back(&node);
    }
    for (const auto& demand : reply->demands())
      demands.push_back({Json(api_json::amounts_json(demand.resources())), demand.count()});
    for (const auto& failure : reply->recent_failures()) failures.push_back(failure);
    Json load = usage_json(alive);
    load["resource_demand"] = std::move(demands);
    load["pg_demand"] = group_demand_json(*reply);
    load["request_demand"] = Json::array();
    Json report = {{"active_nodes", active},
                   {"pending_nodes", Json::array()},
                   {"pending_launches", Json::object()},
                   {"failed_nodes", failures}};
    succeed(call, "Got cluster status.",
            {{"autoscaling_status", nullptr},
             {"autoscaling_error", nullptr},
             {"cluster_status",
              {{"load_metrics_report", load},
               {"autoscaler_report", report},
               {"time", static_cast<double>(reply->wall_time_ms()) / 1000}}}});
  }

  void events(Call& call) const {
    auto all = ask_events();
    if (!all) return fail(call, all.error());
    std::string job = call.query("job_id");
    Json by_job = Json::object();
    for (const auto& event : *all)
      by_job[event.job_id.empty() ? "global" : event.job_id].push_back(
          camel_case(Json(state::event_json(event))));
    if (job.empty())
      return succeed(call, "All events fetched.", {{"events", by_job}}, Keys::kAsTheyAre);
    succeed(call, "Job events fetched.",
            {{"jobId", job}, {"events", by_job.value(job, Json::array())}}, Keys::kAsTheyAre);
  }

  void activities(Call& call) const {
    if (!environment("RAY_CLUSTER_ACTIVITY_HOOK").empty())
      return fail(call, make_error(Code::kUnsupported,
                                   "RAY_CLUSTER_ACTIVITY_HOOK is set: hooks are not in this "
                                   "release, the head runs no Python"));
    auto sources = connect();
    if (!sources) return fail(call, sources.error());
    auto jobs = (*sources)->ask_head(&HeadStub::GetJobs, proto::Empty());
    if (!jobs) return fail(call, jobs.error());
    int active = 0;
    int64_t last_ms = 0;
    for (const auto& job : jobs->jobs()) {
      if (job.config().ray_namespace().starts_with(kInternalNamespace)) continue;
      active += !job.finished();
      last_ms = std::max(last_ms, job.end_time_ms());
    }
    answer_json(
        call, {{"driver",
                {{"is_active", active > 0 ? "ACTIVE" : "INACTIVE"},
                 {"reason",
                  active > 0 ? Json(fmt::format("Number of active drivers: {}", active)) : Json()},
                 {"timestamp", static_cast<double>(wall_now_us()) / 1e6},
                 {"last_activity_at",
                  last_ms > 0 ? Json(static_cast<double>(last_ms) / 1000) : Json()}}}});
  }

  void metadata(Call& call) const {
    succeed(call, "",
            {{"ray_version", RT_RAY_VERSION},
             {"python_version", nullptr},
             {"ray_init_cluster", context_->private_cluster}});
  }

 private:
  Result<std::unique_ptr<state::Sources>> connect() const {
    return state::Sources::connect(context_->cluster.head_address, context_->cluster.token,
                                   kAskTimeoutUs);
  }

  Result<std::vector<proto::ActorInfo>> ask_actors() const {
    RT_ASSIGN(auto sources, connect());
    return actors_of(*sources);
  }
  static Result<std::vector<proto::ActorInfo>> actors_of(state::Sources& sources) {
    proto::ListActorsRequest request;
    request.set_all_namespaces(true);
    RT_ASSIGN(auto reply, sources.ask_head(&HeadStub::ListActors, request));
    return std::vector<proto::ActorInfo>(reply.actors().begin(), reply.actors().end());
  }
  Result<std::vector<state::ClusterEvent>> ask_events() const {
    RT_ASSIGN(auto sources, connect());
    RT_ASSIGN(auto nodes, sources->ask_head(&HeadStub::GetNodes, proto::GetNodesRequest()));
    RT_ASSIGN(auto actors, actors_of(*sources));
    RT_ASSIGN(auto jobs, sources->ask_head(&HeadStub::GetJobs, proto::Empty()));
    RT_ASSIGN(auto groups, sources->ask_head(&HeadStub::ListGroups, proto::Empty()));
    return state::cluster_events({nodes.nodes().begin(), nodes.nodes().end()}, actors,
                                 {groups.groups().begin(), groups.groups().end()}, jobs);
  }

  // Reports on all nodes, or on the one with id `only`. With `whole`, living nodes are asked for
  // their use and processes.
  Result<std::vector<NodeReport>> ask_nodes(bool whole, const std::string& only) const {
    RT_ASSIGN(auto sources, connect());
    RT_ASSIGN(auto reply, sources->ask_head(&HeadStub::GetNodes, proto::GetNodesRequest()));
    std::vector<NodeReport> reports;
    std::vector<state::Sources::Place> places;
    std::vector<size_t> asked;
    std::set<NodeId> alive;
    for (const auto& node : reply.nodes()) {
      if (node.alive()) alive.insert(NodeId::from_binary(node.node_id()));
      if (!only.empty() && to_hex(node.node_id()) != only) continue;
      if (whole && node.alive()) {
        asked.push_back(reports.size());
        places.push_back({{net::Address::tcp(node.ip(), node.port()), "self", ""},
                          to_hex(node.node_id()),
                          false});
      }
      reports.emplace_back();
      reports.back().node = node;
    }
    readings_->keep(alive);
    if (!whole) return reports;
    sources->ask_each(
        places, &NodeStub::GetHostStats, [&](size_t at, const proto::HostStats& stats) {
          NodeReport& report = reports[asked[at]];
          report.before = readings_->exchange(NodeId::from_binary(report.node.node_id()), stats);
          report.now = stats;
          report.answered = true;
        });
    // A node that did not answer this is not asked again: it would cost the others their time.
    std::vector<state::Sources::Place> answering;
    std::vector<size_t> reported;
    for (size_t at = 0; at < places.size(); ++at) {
      if (!reports[asked[at]].answered) continue;
      answering.push_back(places[at]);
      reported.push_back(asked[at]);
    }
    sources->ask_each(answering, &NodeStub::ListProcesses,
                      [&](size_t at, const proto::ProcessesReply& processes) {
                        reports[reported[at]].processes = processes;
                      });
    sources->ask_each(answering, &NodeStub::GetStats,
                      [&](size_t at, const proto::NodeStats& stats) {
                        if (!stats.has_object_store_used()) return;
                        reports[reported[at]].store_used = stats.object_store_used();
                        reports[reported[at]].store_capacity = stats.object_store_capacity();
                      });
    return reports;
  }

  ApiContextPtr context_;
  // Shared with copies of this object in handlers.
  std::shared_ptr<LastReadings> readings_ = std::make_shared<LastReadings>();
};

}  // namespace

void add_cluster_routes(http::Server& server, const ApiContextPtr& context) {
  auto routes = std::make_shared<const ClusterRoutes>(context);
  auto to = [routes](void (ClusterRoutes::*method)(Call&) const) {
    return [routes, method](Call& call) { ((*routes).*method)(call); };
  };
  AnswerCache cache;
  server.on("GET", "/nodes", cache.around(to(&ClusterRoutes::nodes)));
  server.on("GET", "/nodes/([0-9a-fA-F]+)", cache.around(to(&ClusterRoutes::node)));
  server.on("GET", "/logical/actors", cache.around(to(&ClusterRoutes::actors)));
  server.on("GET", "/logical/actors/([0-9a-fA-F]+)", cache.around(to(&ClusterRoutes::actor)));
  server.on("GET", "/events", cache.around(to(&ClusterRoutes::events)));
  server.on("GET", "/api/cluster_status", to(&ClusterRoutes::status));
  server.on("GET", "/api/component_activities", to(&ClusterRoutes::activities));
  server.on("GET", "/api/v0/cluster_metadata", to(&ClusterRoutes::metadata));
}

}  // namespace rt::head
