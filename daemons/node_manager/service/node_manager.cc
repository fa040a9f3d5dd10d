// NodeManager: start, cluster membership, stop.
#include "daemons/node_manager/service/node_manager.h"

#include <fmt/format.h>
#include <unistd.h>

#include "common/base/log.h"
#include "daemons/node_manager/core/registration.h"
#include "daemons/node_manager/service/job_reports.h"
#include "observability/api_json/metrics_targets.h"

namespace rt::node {
namespace {

rpc::Identity identity_of(const NodeManagerOptions& options, const std::string& cluster_id) {
  rpc::Identity me;
  me.role = "node_manager";
  me.id = options.node_id.binary();
  me.cluster_id = cluster_id;
  me.token = options.token;
  return me;
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

NodeIdentity core_identity(const NodeManagerOptions& options, int port) {
  NodeIdentity me;
  me.id = options.node_id;
  me.ip = options.node_ip;
  me.port = port;
  me.total = options.total;
  me.seed = options.seed;
  me.labels = {options.labels.begin(), options.labels.end()};
  me.gpu_names = options.gpu_names;
  return me;
}

}  // namespace

NodeManager::NodeManager(net::Loop& loop, NodeManagerOptions options, Events events)
    : loop_(loop),
      options_(std::move(options)),
      events_(std::move(events)),
      decisions_(loop_),
      sessions_(options_.socket_path, options_.store_socket),
      shutdown_(loop_, options_, sessions_,
                {[this](const std::string& why) { begin_stop(why); }, events_.on_stopped}) {}

NodeManager::~NodeManager() {
  // Calls that wait end with their connections, when only a part of this object is left.
  decisions_.stop();
}

Status NodeManager::start() {
  processes_ = std::make_unique<Processes>(loop_, options_);
  rpc::ServerOptions server;
  server.identity = identity_of(options_, "");
  server.hello_timeout_us = options_.settings.hello_timeout_ms * 1000;
  server.max_connections = static_cast<int>(options_.settings.max_connections);
  server.on_connection = [this](const std::shared_ptr<rpc::Connection>& connection) {
    on_connection(connection);
  };
  server.on_foreign = [this](const rpc::Preamble& preamble, int fd, bool is_unix) {
    return on_foreign(preamble, fd, is_unix);
  };
  server_ = std::make_unique<rpc::Server>(loop_, std::move(server));
  RT_TRY(options_.unix_listen_fd >= 0
             ? server_->listen_fd(options_.unix_listen_fd)
             : server_->listen(net::Address::unix_socket(options_.socket_path)));
  RT_TRY(options_.tcp_listen_fd >= 0 ? server_->listen_fd(options_.tcp_listen_fd)
                                     : server_->listen(options_.tcp));

  driver_ = std::make_unique<CoreDriver>(loop_, decisions_, options_.settings,
                                         core_identity(options_, server_->port()));
  profiling_ = std::make_unique<Profiling>(loop_, options_, core(), processes_->reaper());
  requests_ = std::make_unique<Requests>(loop_, *driver_, sessions_, processes_->starter(),
                                         options_.node_ip);

  head_ = std::make_unique<HeadLink>(loop_, options_.settings, options_.head, options_.is_head_node,
                                     identity_of(options_, ""), head_events());
  processes_->connect(*driver_, *head_);
  shutdown_.connect(*driver_, *head_, *processes_);
  task_events_ = std::make_unique<EventRelay>(*head_, wall_now_us(),
                                              options_.settings.task_events_queue_bytes);
  if (!options_.store_socket.empty()) {
    StoreLink::Events on{[this] { join(); }, [this](const Error& why) { stop(store_ended(why)); },
                         [this] { load_reports_->changed(); }, [this] { store_problem_changed(); },
                         [this](const proto::LeaseNotice& late) { decisions_.notice(0, late); }};
    store_ = std::make_unique<StoreLink>(loop_, options_, identity_of(options_, ""), std::move(on));
  }
  dead_workers_ = std::make_unique<DeadWorkers>(loop_, *head_, sessions_, store_.get());
  news_ = std::make_unique<NewsDelivery>(
      options_, NewsDelivery::Parts{*driver_, sessions_, store_.get()},
      [this](const std::string& why) {
        stop(failed_because("the head declared this node dead: " + why, Code::kNodeDied));
      });
  admission_ = std::make_unique<Admission>(
      options_, Admission::Parts{*driver_, sessions_, *head_, news_->news().membership(),
                                 store_.get(), [this](proto::Node* node) { fill_node(node); }});
  const NodeParts parts{core(), sessions_, store_.get()};
  load_reports_ = std::make_unique<LoadReports>(loop_, options_.settings, *head_, parts);
  decisions_.connect({*driver_, sessions_, processes_->starter(), processes_->logs(), *head_,
                      *requests_, *dead_workers_, *load_reports_});
  figures_ = std::make_unique<Figures>(loop_, options_, *head_, *load_reports_, parts);
  RT_TRY(figures_->listen());
  rpc_ = std::make_unique<NodeRpc>(
      NodeRpc::Parts{*driver_, sessions_, *admission_, *requests_, *processes_, *load_reports_,
                     *figures_, *task_events_, store_.get(), shutdown_, options_.log_directory()});
  // The node joins once its store has answered: drivers that find it at the head use the store, and
  // must be told which process hangs if it does.
  if (store_) {
    store_->start();
  } else {
    join();
  }
  driver_->drive([](NodeCore& core, Now now) { core.start(now); });
  return {};
}

// ---- cluster membership

void NodeManager::join() {
  if (!shutdown_.has_begun()) head_->start(rpc_.get());
}

HeadLink::Events NodeManager::head_events() {
  HeadLink::Events on;
  on.fill_registration = [this](proto::RegisterNodeRequest* request) {
    fill_registration(request);
  };
  on.on_registered = [this](const proto::RegisterNodeReply& reply) { on_registered(reply); };
  on.on_event = [this](const proto::HeadEvent& event) {
    if (!shutdown_.has_begun()) news_->news().event(event);
  };
  on.on_lost = [this](const Error& why) { head_lost(why); };
  on.on_fatal = [this](const Error& error) { stop(failed_because(error.message, error.code)); };
  return on;
}

void NodeManager::fill_node(proto::Node* node) {
  proto::ResourceReport report;
  load_reports_->fill(&report);
  rt::node::fill_node(core(), report, node);
  node->set_name(options_.shown_name());
  node->set_hostname(host_name());
  node->set_session_dir(options_.session_dir);
  node->set_node_manager_socket(options_.socket_path);
  node->set_object_store_socket(options_.store_socket);
  for (const auto& [key, value] : options_.labels) (*node->mutable_labels())[key] = value;
  node->set_is_head(options_.is_head_node);
  node->set_start_time_ms(figures_->start_time_ms());
  node->set_pid(::getpid());
  (*node->mutable_labels())[api_json::kMetricsPortLabel] = std::to_string(figures_->metrics_port());
}

void NodeManager::fill_registration(proto::RegisterNodeRequest* request) {
  fill_node(request->mutable_node());
  fill_holdings(core(), request);
  admission_->fill_jobs(request);
  list_jobs(processes_->jobs(), request->mutable_submitted_jobs());
}

void NodeManager::on_registered(const proto::RegisterNodeReply& reply) {
  if (shutdown_.has_begun()) return;
  const bool first = !admission_->is_open();
  if (admission_->cluster_id() != reply.cluster_id())
    server_->set_identity(identity_of(options_, reply.cluster_id()));
  RT_INFO("registered at the head {} with {} known nodes", options_.head.to_string(),
          reply.nodes_size());
  task_events_->resend();
  report_jobs(*head_, processes_->jobs(), options_.node_id);
  news_->news().registered(reply, first);
  proto::SubscribeRequest subscribe;
  subscribe.set_nodes(true);
  rpc::call(*head_->connection(), &proto::HeadService::Stub::Subscribe, subscribe, -1,
            [](Result<proto::Empty>) {});
  load_reports_->begin();
  figures_->begin_samples();
  (first ? events_.on_ready : events_.on_status)(status_line());
  admission_->open(reply);
}

void NodeManager::store_problem_changed() {
  if (shutdown_.has_begun()) return;
  const bool hangs = !store_->problem().empty();
  const std::string text = hangs ? status_line() : "The object store of this node answers again.";
  RT_WARN("{}", text);
  sessions_.tell_drivers(text, false);
  // A node that still waits for its store has a problem to show, and no membership yet.
  if (hangs || admission_->is_open()) events_.on_status(status_line());
  load_reports_->changed();
}

std::string NodeManager::status_line() const {
  if (const std::string problem = store_ ? store_->problem() : std::string(); !problem.empty())
    return fmt::format("This node does not work as it should: {}.", problem);
  return fmt::format("Node {} of the cluster at {}", options_.node_id.hex(),
                     options_.head.to_string());
}

void NodeManager::head_lost(const Error& why) {
  if (shutdown_.has_begun()) return;
  events_.on_status(
      fmt::format("The head at {} is away: {}", options_.head.to_string(), why.message));
  news_->news().lost(why.message);
}

// ---- stop

void NodeManager::begin_stop(const std::string& why) {
  events_.on_stopping(why);
  if (!figures_) return;  // it has not started
  load_reports_->stop();
  dead_workers_->stop();
  admission_->stop();
  requests_->stop();
  decisions_.stop();
}

}  // namespace rt::node
