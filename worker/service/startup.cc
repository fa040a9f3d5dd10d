// Start, registration and stop of a Worker.
#include <fmt/core.h>
#include <unistd.h>

#include "worker/service/impl.h"

namespace rt::worker {
namespace {

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// A file descriptor that is closed unless it is handed on.
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

// The error says which store does not answer, since when, and what to do, as far as the
// node-manager knows.
Result<std::unique_ptr<store::StoreClient>> attach_to_store(
    net::PollLoop& loop, const Settings& settings, const store::StoreClient::Options& options,
    const proto::RegisterWorkerReply& node, int64_t deadline_us) {
  const int64_t limit_us = std::max<int64_t>(1'000'000, deadline_us - steady_now_us());
  auto attached = store::StoreClient::attach(loop, settings, options, limit_us);
  if (attached) return attached;
  std::string problem = node.object_store_problem();
  if (problem.empty() && attached.error().code == Code::kTimeout) {
    const int pid = node.object_store_pid();
    problem = fmt::format(
        "its object store{} has not answered for {} s: it hangs or was stopped "
        "(`kill -CONT` lets a stopped process go on), or the machine is "
        "overloaded; `rayctl status` says whether it goes on",
        pid == 0 ? "" : fmt::format(" (process {})", pid), limit_us / 1'000'000);
  }
  if (problem.empty()) return attached;
  return make_error(attached.error().code, fmt::format("cannot use this node: {} ({})", problem,
                                                       attached.error().message));
}

}  // namespace

Status Worker::Impl::start() {
  WorkerLock lock(shared.mutex);
  // Replaced after registration, when a driver knows its id.
  objects.reset(shared.options.worker_id);
  streams.reset();
  shared.context.worker_id = shared.options.worker_id;
  shared.context.node_manager_socket = shared.options.node_manager_socket;
  int64_t deadline = steady_now_us() + shared.options.connect_timeout_us;

  // The socket at which others reach this process.
  uint64_t unique = shared.self.rng().next();
  std::string name = shared.options.is_driver
                         ? fmt::format("d-{}-{:08x}", getpid(), static_cast<uint32_t>(unique))
                         : "w-" + shared.options.worker_id.hex().substr(0, 16);
  shared.self.set_socket_path(directory_of(shared.options.node_manager_socket) + "/" + name);

  RT_TRY(connect(lock, deadline));
  // The socket is bound here, because registering makes it known, but connections are accepted
  // only once this process knows its id and has its store: the node-manager may lease it, and
  // tasks may arrive, before the reply to the registration has been read.
  Descriptor listener;
  RT_ASSIGN(listener.fd,
            net::listen_on(net::Address::unix_socket(shared.self.address().socket_path())));
  RT_ASSIGN(const proto::RegisterWorkerReply node, enroll(lock));
  registered(node);
  // A node without an object store refuses large values.
  if (!shared.context.object_store_socket.empty()) {
    store::StoreClient::Options store_options{shared.context.object_store_socket,
                                              shared.self.identity(),
                                              shared.context.worker_id,
                                              shared.context.job_id,
                                              getpid(),
                                              shared.options.collect_garbage};
    RT_ASSIGN(auto store,
              attach_to_store(shared.loop, shared.settings(), store_options, node, deadline));
    objects.set_store(std::move(store));
  }
  RT_TRY(services.serve(std::exchange(listener.fd, -1)));
  return finish_start();
}

Status Worker::Impl::connect(WorkerLock& lock, int64_t deadline) {
  std::optional<Result<std::shared_ptr<rpc::Connection>>> connection;
  rpc::connect(shared.loop,
               {net::Address::unix_socket(shared.options.node_manager_socket), "self", ""},
               shared.self.identity(), shared.options.connect_timeout_us,
               [&](Result<std::shared_ptr<rpc::Connection>> c) { connection = std::move(c); });
  while (!connection) {
    if (pump.wait_until(lock, deadline, [&] { return connection.has_value(); }) == Waited::kTimeout)
      return make_error(Code::kTimeout,
                        fmt::format("the node-manager at {} did not answer in time: check that it "
                                    "runs (rayctl status) and look at its log",
                                    shared.options.node_manager_socket));
  }
  if (!*connection) return connection->error();
  nodes.set_local(**connection);
  services.offer_to_node(NodeKey::nil(), *nodes.local());
  nodes.local()->set_closed_handler([this](const Error& why) {
    assert_locked();
    on_node_manager_lost(why);
  });
  return {};
}

Result<proto::RegisterWorkerReply> Worker::Impl::enroll(WorkerLock& lock) {
  proto::RegisterWorkerRequest request;
  request.set_worker_id(shared.options.worker_id.binary());
  request.set_pid(getpid());
  request.set_is_driver(shared.options.is_driver);
  *request.mutable_job_config() = shared.options.job_config;
  request.set_socket_path(shared.self.address().socket_path());
  request.set_language(shared.options.language);
  std::optional<Result<proto::RegisterWorkerReply>> reply;
  rpc::call(*nodes.local(), &proto::NodeManagerService::Stub::RegisterWorker, request,
            shared.options.connect_timeout_us,
            [&](Result<proto::RegisterWorkerReply> r) { reply = std::move(r); });
  while (!reply) pump.wait_until(lock, -1, [&] { return reply.has_value(); });
  return std::move(*reply);
}

void Worker::Impl::registered(const proto::RegisterWorkerReply& r) {
  Options& options = shared.options;
  Context& context = shared.context;
  context.job_id = JobId::from_binary(r.job_id());
  context.node_id = NodeId::from_binary(r.node_id());
  context.is_driver = options.is_driver;
  context.worker_id = options.is_driver ? driver_worker_id(context.job_id) : options.worker_id;
  context.ray_namespace = r.ray_namespace();
  context.session_dir = r.session_dir();
  context.session_name = r.session_name();
  context.node_ip = r.ip();
  context.node_name = r.node_name();
  context.node_manager_port = r.port();
  context.head_address = r.head_address();
  context.dashboard_address = r.dashboard_address();
  context.object_store_socket = r.object_store_socket();
  if (!r.event_counters().empty()) {
    // A driver of another user cannot open the counters. Then nobody learns how many events are
    // lost when it is killed.
    if (auto counter = SharedCounter::open(r.event_counters(), r.event_counter()))
      recorder.count_in(std::move(*counter));
  }
  context.token = r.token();
  for (const auto& node : r.nodes()) nodes.add(node);
  options.job_config.set_job_id(context.job_id.binary());
  options.job_config.set_ray_namespace(context.ray_namespace);
  shared.self.registered(r.cluster_id());
  objects.reset(context.worker_id);
  streams.reset();
  objects.refs().set_wake(shared.loop.waker());
  submission.set_first_number(shared.self.rng().next());
  shared.self.set_put_task(options.is_driver
                               ? driver_task_id(context.job_id)
                               : make_task_id(shared.self.rng().next(), context.job_id));
}

Status Worker::Impl::finish_start() {
  nodes.set_registered(true);
  groups.set_here(shared.context.node_id);
  if (shared.options.is_driver && shared.options.job_config.log_to_driver()) {
    proto::SubscribeRequest logs;
    logs.set_logs_of_job(shared.context.job_id.binary());
    logs.set_errors(true);
    head.subscribe(logs);
  }
  execution.connected();
  // Reports what was counted before the start.
  recorder.metrics_changed();
  shared.loop.flush_all();
  return pump.start();
}

// A pool worker adopts the job of the first task it gets, so that what the task submits belongs to
// the same job and has the same settings.
void Worker::Impl::adopt_job(const proto::JobConfig& job) {
  JobId id = JobId::from_binary(job.job_id());
  if (shared.options.is_driver || !shared.context.job_id.is_nil() || id.is_nil()) return;
  shared.context.job_id = id;
  shared.context.ray_namespace = job.ray_namespace();
  shared.options.job_config = job;
  shared.self.job_changed();
  shared.self.set_put_task(make_task_id(shared.self.rng().next(), shared.context.job_id));
  services.identity_changed();
}

void Worker::Impl::on_node_manager_lost(const Error& why) {
  if (shared.stopping) return;
  nodes.set_registered(false);
  if (!shared.options.is_driver) {
    // A worker does not outlive its node-manager.
    execution.departure().end(1);
    // User code may never return.
    if (!execution.end_running()) _exit(1);
    return;
  }
  const std::string& said = notices.last_words();
  const std::string text = fmt::format(
      "The connection to this node's node-manager is lost ({}): nothing more can be run from this "
      "program. Look at {}/logs.",
      said.empty() ? why.message : said, shared.context.session_dir);
  proto::ExitInfo death;
  death.set_kind(proto::ExitInfo::NODE_DIED);
  death.set_ip(shared.context.node_ip);
  // The error text adds the full stop itself.
  death.set_message(text.substr(0, text.size() - 1));
  actor_client.calls().close(death);
  leases.submitter().close(make_error(Code::kLocalNodeDied, text));
  notices.warn(text);
}

void Worker::Impl::stop() {
  {
    WorkerLock lock(shared.mutex);
    if (shared.stopping) return;
    recorder.flush();
    objects.refs().drain_releases();
    shared.loop.flush_all();
    notices.deliver(lock);
    shared.stopping = true;
    notices.close();
    recorder.close();
    nodes.set_registered(false);
    objects.refs().close();
    pump.stop();
  }
  pump.join();
  WorkerLock lock(shared.mutex);
  services.close();
  peers.close();
  head.close();
  nodes.close();
  unlink(shared.self.address().socket_path().c_str());
}

// Objects that tasks of this worker put must stay readable as long as somebody refers to them, and
// tasks that they submitted run on although nobody waits for them. So do the actors that wait for
// arguments of this worker.
bool Worker::Impl::is_needed() const {
  return objects.refs().owned() > 0 || leases.submitter().pending() > 0 ||
         actor_client.calls().pending() > 0 || actor_client.any_undelivered();
}

}  // namespace rt::worker
