#include "daemons/node_manager/service/processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "daemons/node_manager/service/job_reports.h"

namespace rt::node {
namespace {

WorkerStarterOptions starter_options(const NodeManagerOptions& options) {
  WorkerStarterOptions starter;
  starter.python = options.programs.python;
  starter.python_path = options.programs.python_path;
  starter.cpp_worker = options.programs.cpp_worker;
  starter.end_children = options.settings.kill_child_processes_on_worker_exit;
  starter.session_dir = options.session_dir;
  starter.socket_path = options.socket_path;
  starter.node_id_hex = options.node_id.hex();
  starter.env = options.programs.env;
  starter.head_address = options.head.to_string();
  starter.token = options.token;
  return starter;
}

JobProcesses::Options job_options(const NodeManagerOptions& options) {
  JobProcesses::Options jobs;
  jobs.session_dir = options.session_dir;
  jobs.python = options.programs.python;
  jobs.python_path = options.programs.python_path;
  jobs.head_address = options.head.to_string();
  jobs.max_log_chunk = static_cast<size_t>(options.settings.job_log_chunk_bytes);
  return jobs;
}

}  // namespace

Processes::Processes(net::Loop& loop, const NodeManagerOptions& options)
    : loop_(loop),
      options_(options),
      reaper_(loop),
      starter_(loop, reaper_, starter_options(options), starter_events()) {
  starter_.start();
}

WorkerStarterEvents Processes::starter_events() {
  return {
      [this](const WorkerId& id, ProcessId process) {
        logs_->add(id, process.pid, starter_.log_path(id, process.pid, false),
                   starter_.log_path(id, process.pid, true));
        driver_->drive([&](NodeCore& core, Now now) { core.worker_spawned(id, process.pid, now); });
      },
      [this](const WorkerId& id, const std::string& why) {
        driver_->drive([&](NodeCore& core, Now now) { core.worker_start_failed(id, why, now); });
      },
      [this](const WorkerId& id, const ProcessEnd& end) {
        logs_->remove(id);
        // A worker that was killed before it registered has left its Unix socket behind
        // (docs/connections.md).
        const std::string sockets =
            options_.socket_path.substr(0, options_.socket_path.rfind('/') + 1);
        ::unlink((sockets + "w-" + id.hex().substr(0, 16)).c_str());
        driver_->drive([&](NodeCore& core, Now now) { core.worker_exited(id, end, now); });
      }};
}

void Processes::connect(CoreDriver& driver, HeadLink& head) {
  driver_ = &driver;
  auto publish = [this, &head](const proto::HeadEvent& event) {
    proto::HeadEvent mine = event;
    for (proto::LogLines& lines : *mine.mutable_logs()) {
      lines.set_ip(options_.node_ip);
      lines.set_node_id(options_.node_id.binary());
    }
    head.send_oneway(&proto::HeadService::Stub::PublishLogs, mine);
  };
  logs_ = std::make_unique<LogMonitor>(loop_, options_.settings, options_.log_directory(), publish);
  auto report = [this, &head](const proto::SubmittedJob& job) {
    report_job(head, *jobs_, job, options_.node_id);
    if (job.exited())
      driver_->drive([&](NodeCore& core, Now now) { core.release_job(job.submission_id(), now); });
  };
  jobs_ = std::make_unique<JobProcesses>(loop_, reaper_, job_options(options_), report);
}

Status Processes::start_job(const proto::SubmittedJob& job,
                            std::map<std::string, std::string> env) {
  Result<std::vector<std::string>> gpus = Error{};
  driver_->drive([&](NodeCore& core, Now now) {
    gpus = core.hold_for_job(job.submission_id(),
                             ResourceSet::from_proto(job.entrypoint_resources()), now);
  });
  if (!gpus) return gpus.error();
  if (!gpus->empty()) env["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(*gpus, ","));
  Status started = jobs_->start(job, env);
  if (!started)
    driver_->drive([&](NodeCore& core, Now now) { core.release_job(job.submission_id(), now); });
  return started;
}

}  // namespace rt::node
