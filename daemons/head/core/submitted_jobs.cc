#include "daemons/head/core/submitted_jobs.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/json_depth.h"
#include "common/base/json_text.h"
#include "common/scheduling/constraint.h"
#include "common/scheduling/policy.h"

namespace rt::head {
namespace {

// The id becomes part of a file name on a node (process/job_processes.cc).
constexpr size_t kMaxIdBytes = 200;
constexpr size_t kMaxMessageBytes = 64 * 1024;
constexpr char kStartError[] = "JOB_ENTRYPOINT_COMMAND_START_ERROR";
constexpr char kStartTimeout[] = "JOB_SUPERVISOR_ACTOR_START_TIMEOUT";
constexpr char kNodeDied[] = "JOB_SUPERVISOR_ACTOR_DIED";

bool word_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

Status check_id(const std::string& id) {
  bool good =
      !id.empty() && id.size() <= kMaxIdBytes &&
      std::all_of(id.begin(), id.end(),
                  [](char c) { return word_char(c) || c == '_' || c == '-' || c == '.'; }) &&
      id.front() != '.' && id.front() != '-';
  if (good) return {};
  return make_error(
      Code::kInvalid,
      fmt::format(
          "a submission id is 1 to {} letters, digits, '-', '_' or '.', and does not begin "
          "with '-', which commands would take for an option, or with '.': give another one",
          kMaxIdBytes));
}

std::string generated_id(Rng& rng) {
  // The alphabet lacks characters that look alike.
  static constexpr char kAlphabet[] = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz123456789";
  std::string id = "raysubmit_";
  for (int i = 0; i < 16; ++i) id += kAlphabet[rng.below(sizeof kAlphabet - 1)];
  return id;
}

// Text and metadata become a variable of the driver's environment.
constexpr size_t kMaxRuntimeEnvBytes = 64 * 1024;

Status check_runtime_env(const std::string& text) {
  if (text.size() > kMaxRuntimeEnvBytes)
    return make_error(Code::kInvalid,
                      fmt::format("the runtime environment has {} bytes: {} are accepted",
                                  text.size(), kMaxRuntimeEnvBytes));
  if (text.empty()) return {};
  if (json_depth(text) > kMaxJsonDepth)
    return make_error(
        Code::kInvalid,
        fmt::format("the runtime environment is nested more than {} deep", kMaxJsonDepth));
  nlohmann::json env = parse_json(text);
  if (env.is_object() || env.is_null()) return {};
  return make_error(Code::kInvalid, "the runtime environment is not a JSON object");
}

std::string default_message(const std::string& status) {
  if (status == "PENDING") return "Job has not started yet.";
  if (status == "RUNNING") return "Job is currently running.";
  if (status == "STOPPED") return "Job was intentionally stopped.";
  if (status == "SUCCEEDED") return "Job finished successfully.";
  return "Job failed.";
}

// Returns the head's own node if it takes work, else any node that does, else null.
NodeState* node_for_driver(Cluster& cluster) {
  const NodeState* any = nullptr;
  for (const auto& [id, node] : cluster.nodes()) {
    if (node.takes_work() && (!any || node.info.is_head())) any = &node;
  }
  return any ? cluster.find(any->id) : nullptr;
}

}  // namespace

SubmittedJobs::SubmittedJobs(Env env) : env_(env) {}

SubmittedJobs::~SubmittedJobs() = default;

bool SubmittedJobs::terminal(const proto::SubmittedJob& job) {
  return job.status() != "PENDING" && job.status() != "RUNNING";
}

void SubmittedJobs::recover(const proto::SubmittedJob& job) {
  jobs_[job.submission_id()] = job;
  if (terminal(job)) ended_.push_back(job.submission_id());
}

void SubmittedJobs::submit(const proto::SubmitJobRequest& request, Now now,
                           Reply<proto::SubmitJobReply> reply) {
  std::string id = request.submission_id();
  if (id.empty()) {
    do id = generated_id(env_.rng);
    while (jobs_.contains(id));
  }
  if (Status valid = check_id(id); !valid) return reply(valid.error());
  if (jobs_.contains(id))
    return reply(make_error(
        Code::kAlreadyExists,
        fmt::format(
            "Job with submission_id {} already exists. Please use a different submission_id.",
            id)));
  if (request.entrypoint().empty())
    return reply(make_error(Code::kInvalid, "the job has no entrypoint: give the command to run"));
  if (request.entrypoint().find('\0') != std::string::npos)
    return reply(
        make_error(Code::kInvalid,
                   "the entrypoint has a zero byte in it: a shell would run what is before it"));
  if (Status env = check_runtime_env(request.runtime_env_json()); !env) return reply(env.error());

  proto::SubmittedJob& job = jobs_[id];
  job.set_submission_id(id);
  job.set_entrypoint(request.entrypoint());
  *job.mutable_metadata() = request.metadata();
  job.set_runtime_env_json(request.runtime_env_json());
  job.set_cwd(request.cwd());
  if (request.has_entrypoint_resources())
    ResourceSet::from_proto(request.entrypoint_resources())
        .to_proto(job.mutable_entrypoint_resources());
  if (request.has_entrypoint_labels())
    *job.mutable_entrypoint_labels() = request.entrypoint_labels();
  job.set_status("PENDING");
  job.set_message(default_message("PENDING"));
  job.set_start_time_ms(now.wall_us / 1000);
  ++committing_[id];
  persist(job);
  env_.journal.then([this, id, reply = std::move(reply)](const Status& status, Now now) {
    committing_.erase(id);
    proto::SubmittedJob* job = mutable_find(id);
    if (!status) {
      jobs_.erase(id);
      return reply(status.error());
    }
    proto::SubmitJobReply answer;
    answer.set_submission_id(id);
    reply(std::move(answer));
    if (job) start(*job, now);
  });
}

proto::SubmittedJob* SubmittedJobs::mutable_find(const std::string& submission_id) {
  auto it = jobs_.find(submission_id);
  return it == jobs_.end() || committing_.contains(submission_id) ? nullptr : &it->second;
}

Result<const proto::SubmittedJob*> SubmittedJobs::find(const std::string& submission_id) const {
  auto it = jobs_.find(submission_id);
  if (it == jobs_.end() || committing_.contains(submission_id))
    return make_error(Code::kNotFound, fmt::format("Job {} does not exist", submission_id));
  return &it->second;
}

proto::SubmittedJobsReply SubmittedJobs::list() const {
  proto::SubmittedJobsReply reply;
  for (const auto& [id, job] : jobs_) {
    if (!committing_.contains(id)) *reply.add_jobs() = job;
  }
  return reply;
}

// Returns the head's own node, unless the entrypoint needs resources or labels. Returns null when
// no node fits at the moment.
NodeState* SubmittedJobs::choose(const proto::SubmittedJob& job, Now now) {
  using scheduling::Amount;
  const ResourceSet wanted = ResourceSet::from_proto(job.entrypoint_resources());
  if (wanted.empty() && job.entrypoint_labels().rules().empty() &&
      !env_.options.settings.job_driver_on_any_node)
    return node_for_driver(env_.cluster);
  const scheduling::Nodes& nodes = env_.cluster.candidates();
  scheduling::NodeMask fitting =
      nodes.matching(job.entrypoint_labels()) & nodes.open() & nodes.having(wanted, Amount::kFree);
  if (auto refused = refused_.find(job.submission_id()); refused != refused_.end()) {
    for (const auto& [id, until_us] : refused->second) {
      if (NodeState* node = env_.cluster.find(id);
          node && node->alive() && until_us > now.steady_us)
        fitting.remove(node->slot);
    }
  }
  const scheduling::NodeSlot slot = scheduling::choose(
      nodes,
      {.resources = wanted, .spread_threshold = env_.options.settings.scheduler_spread_threshold},
      std::move(fitting));
  return slot == scheduling::kNoNode ? nullptr : env_.cluster.find(nodes.id(slot));
}

void SubmittedJobs::wait(proto::SubmittedJob& job, Now now) {
  ResourceSet wanted = ResourceSet::from_proto(job.entrypoint_resources());
  std::string why = default_message("PENDING");
  const auto& all = env_.cluster.nodes();
  if (std::none_of(all.begin(), all.end(), [](const auto& one) { return one.second.alive(); })) {
    why += fmt::format(
        " It waits because no node is alive: start one with `rayctl start --address={}`.",
        env_.options.head_address);
  } else if (!wanted.empty() || !job.entrypoint_labels().rules().empty()) {
    proto::NodeConstraint constraint;
    *constraint.mutable_hard() = job.entrypoint_labels();
    why += " It waits for a node";
    if (!wanted.empty())
      why += " with " + wanted.to_string() +
             (env_.cluster.candidates().infeasible(wanted) ? ", which no node of the cluster has"
                                                           : " free");
    if (!job.entrypoint_labels().rules().empty())
      why += "; only on " + scheduling::describe(constraint);
    why += '.';
  }
  if (job.message() != why) {
    job.set_message(why);
    persist(job);
  }
  if (look_timer_) return;
  look_timer_ = env_.timers.at(
      now.steady_us + std::max<int64_t>(1, env_.options.settings.placement_settle_ms) * 1000,
      [this](Now later) {
        look_timer_ = 0;
        look_again(later);
      });
}

void SubmittedJobs::look_again(Now now) {
  const int64_t patience_ms = env_.options.settings.job_start_timeout_ms;
  for (auto& [id, job] : jobs_) {
    if (terminal(job) || committing_.contains(id) || !job.node_id().empty()) continue;
    if (now.wall_us / 1000 - job.start_time_ms() < patience_ms) {
      start(job, now);
      continue;
    }
    job.set_error_type(kStartTimeout);
    set_status(
        job, "FAILED",
        fmt::format("Job could not be started within {} s (RAY_JOB_START_TIMEOUT_SECONDS). {}",
                    static_cast<double>(patience_ms) / 1000, job.message()),
        now);
  }
}

void SubmittedJobs::start(proto::SubmittedJob& job, Now now) {
  if (terminal(job)) return;
  NodeState* node = choose(job, now);
  if (!node) return wait(job, now);
  job.set_node_id(node->id.binary());
  job.set_message(default_message("PENDING"));
  persist(job);
  assigning_.insert(job.submission_id());
  env_.journal.then([this, id = job.submission_id()](const Status& status, Now later) {
    assigned(id, status, later);
  });
}

void SubmittedJobs::assigned(const std::string& submission_id, const Status& status, Now now) {
  assigning_.erase(submission_id);
  proto::SubmittedJob* job = mutable_find(submission_id);
  if (!job || terminal(*job)) return;
  if (!status) {
    job->clear_node_id();
    persist(*job);
    return wait(*job, now);
  }
  // A node that is away is asked when it registers again.
  const NodeState* node = env_.cluster.find(NodeId::from_binary(job->node_id()));
  if (node && node->usable()) send_start(*job, *node);
}

void SubmittedJobs::send_start(const proto::SubmittedJob& job, const NodeState& node) {
  proto::StartJobProcessRequest request;
  *request.mutable_job() = job;
  nlohmann::json runtime_env = parse_json(job.runtime_env_json());
  if (!runtime_env.is_object()) runtime_env = nlohmann::json::object();
  nlohmann::json config = {{"runtime_env", runtime_env}, {"metadata", nlohmann::json::object()}};
  for (const auto& [key, value] : job.metadata()) config["metadata"][key] = value;
  config["metadata"]["job_submission_id"] = job.submission_id();
  if (!job.metadata().contains("job_name")) config["metadata"]["job_name"] = job.submission_id();
  auto& env = *request.mutable_env();
  env["RAY_ADDRESS"] = env_.options.head_address;
  env["RAY_SUBMISSION_ID"] = job.submission_id();
  // Text from peers need not be UTF-8: invalid bytes are replaced, because dump() would otherwise
  // throw.
  env["RAY_JOB_CONFIG_JSON_ENV_VAR"] = json_text(config);
  env["PYTHONUNBUFFERED"] = "1";
  if (!job.cwd().empty()) env["PWD"] = job.cwd();
  env_.sink.start_job(node.link(), request);
}

bool SubmittedJobs::set_status(proto::SubmittedJob& job, const std::string& status,
                               const std::string& message, Now now) {
  if (terminal(job) || (status == "PENDING" && job.status() == "RUNNING")) return false;
  job.set_status(status);
  job.set_message(message.empty() || status == "RUNNING" ? default_message(status)
                                                         : message.substr(0, kMaxMessageBytes));
  if (terminal(job)) {
    if (job.end_time_ms() == 0) job.set_end_time_ms(now.wall_us / 1000);
    ended_.push_back(job.submission_id());
    refused_.erase(job.submission_id());
  }
  env_.sink.log(fmt::format("submitted job {} is {}: {}", job.submission_id(), job.status(),
                            job.message().substr(0, 200)));
  persist(job);
  return true;
}

void SubmittedJobs::stop(const std::string& submission_id, Now now,
                         Reply<proto::StopJobReply> reply) {
  proto::SubmittedJob* job = mutable_find(submission_id);
  if (!job)
    return reply(make_error(Code::kNotFound, fmt::format("Job {} does not exist", submission_id)));
  proto::StopJobReply answer;
  if (terminal(*job)) return reply(std::move(answer));
  NodeState* node = env_.cluster.find(NodeId::from_binary(job->node_id()));
  if (job->node_id().empty() || assigning_.contains(submission_id)) {
    set_status(*job, "STOPPED", "", now);
    answer.set_stopped(true);
    // Otherwise a head that is restarted might start it.
    return env_.journal.then([answer, reply = std::move(reply)](const Status& status, Now) {
      status ? reply(answer) : reply(status.error());
    });
  }
  if (!node || !node->usable())
    return reply(make_error(
        Code::kUnavailable,
        fmt::format("the node that runs job {} is not connected at the moment; try again",
                    submission_id)));
  stopping_[submission_id].push_back(std::move(reply));
  env_.sink.stop_job(node->link(), submission_id);
}

void SubmittedJobs::remove(const std::string& submission_id, Reply<proto::Empty> reply) {
  proto::SubmittedJob* job = mutable_find(submission_id);
  if (!job)
    return reply(make_error(Code::kNotFound, fmt::format("Job {} does not exist", submission_id)));
  if (!terminal(*job))
    return reply(make_error(Code::kInvalid,
                            fmt::format("Job '{}' cannot be deleted: it is {}. Stop it first.",
                                        submission_id, job->status())));
  std::erase(ended_, submission_id);
  proto::SubmittedJob removed = std::move(*job);
  jobs_.erase(submission_id);
  env_.journal.erase(table::kSubmittedJobs, submission_id);
  env_.journal.then(
      [this, removed = std::move(removed), reply = std::move(reply)](const Status& status, Now) {
        if (status) {
          remove_log(removed);
          return reply(proto::Empty());
        }
        // The disk still has it. A job that has taken its id meanwhile stays.
        if (jobs_.try_emplace(removed.submission_id(), removed).second)
          ended_.push_front(removed.submission_id());
        reply(status.error());
      });
}

void SubmittedJobs::stop_answered(const std::string& submission_id,
                                  const Result<proto::StopJobReply>& reply) {
  auto it = stopping_.find(submission_id);
  if (it == stopping_.end()) return;
  // A node answers requests for one job in the order in which they were sent.
  Reply<proto::StopJobReply> first = std::move(it->second.front());
  it->second.erase(it->second.begin());
  if (it->second.empty()) stopping_.erase(it);
  first(reply);
}

Result<proto::SubmittedJob*> SubmittedJobs::reported(const NodeState& node,
                                                     const proto::SubmittedJob& report) {
  proto::SubmittedJob* job = mutable_find(report.submission_id());
  if (!job)
    return make_error(Code::kNotFound,
                      fmt::format("Job {} does not exist", report.submission_id()));
  if (job->start_time_ms() != report.start_time_ms())
    return make_error(Code::kNotFound, fmt::format("job {} was deleted, and another one has its id",
                                                   report.submission_id()));
  if (job->node_id() != node.id.view())
    return make_error(Code::kInvalid,
                      fmt::format("job {} does not run on this node", report.submission_id()));
  static const char* const kKnown[] = {"PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"};
  if (std::find(std::begin(kKnown), std::end(kKnown), report.status()) == std::end(kKnown))
    return make_error(Code::kInvalid, fmt::format("job {} reported with unknown status '{}'",
                                                  report.submission_id(), report.status()));
  return job;
}

void SubmittedJobs::report(const NodeState& node, const proto::SubmittedJob& report, Now now,
                           Reply<proto::Empty> reply) {
  auto found = reported(node, report);
  if (!found) return reply(found.error());
  proto::SubmittedJob& job = **found;
  if (terminal(job)) {
    persist(job);  // The write of the first report may have failed.
  } else {
    if (report.pid()) job.set_pid(report.pid());
    job.set_exit_code(report.exit_code());
    job.set_exited(report.exited());
    if (report.end_time_ms()) job.set_end_time_ms(report.end_time_ms());
    if (!report.error_type().empty()) job.set_error_type(report.error_type());
    set_status(job, report.status(), report.message(), now);
  }
  env_.journal.then([reply = std::move(reply)](const Status& status, Now) {
    status ? reply(proto::Empty()) : reply(status.error());
  });
}

void SubmittedJobs::start_answered(const std::string& submission_id, const NodeId& node,
                                   const Status& status, Now now) {
  proto::SubmittedJob* job = mutable_find(submission_id);
  if (!job || job->node_id() != node.view() || terminal(*job)) return;
  if (status || status.error().code == Code::kAlreadyExists) {
    if (job->status() == "PENDING") set_status(*job, "RUNNING", "", now);
    return;
  }
  // After a broken connection, or without an answer in time, the start's outcome is unknown. It is
  // sent again when the node is back, fails when the node is dead, and succeeds when the node
  // reports the job.
  if (may_recover(status.error().code)) return;
  if (status.error().code == Code::kResourceExhausted) {
    refused_[submission_id][node] =
        now.steady_us + std::max<int64_t>(1, env_.options.settings.placement_settle_ms) * 1000;
    job->clear_node_id();
    persist(*job);
    return wait(*job, now);
  }
  job->set_error_type(kStartError);
  set_status(*job, "FAILED", "The job's process could not be started: " + status.error().message,
             now);
}

void SubmittedJobs::link(const std::string& submission_id, const JobId& job_id) {
  proto::SubmittedJob* job = mutable_find(submission_id);
  if (!job) return;
  job->set_job_id(job_id.binary());
  persist(*job);
}

void SubmittedJobs::node_registered(NodeState& node,
                                    const std::optional<std::set<std::string>>& here, Now now) {
  for (auto& [id, job] : jobs_) {
    if (terminal(job) || committing_.contains(id) || assigning_.contains(id)) continue;
    if (job.node_id().empty()) {
      start(job, now);
    } else if (job.node_id() == node.id.view() && job.status() == "PENDING") {
      // The first request may have been lost. A node-manager that has the job answers
      // kAlreadyExists.
      send_start(job, node);
    } else if (job.node_id() == node.id.view() && here && !here->contains(id)) {
      job.set_error_type(kNodeDied);
      set_status(job, "FAILED",
                 "The node no longer has the job's process, and the head has no record of its end.",
                 now);
    }
  }
}

void SubmittedJobs::node_lost(const NodeState& node, Now now) {
  for (auto& [id, job] : jobs_) {
    if (job.node_id() != node.id.view() || terminal(job)) continue;
    job.set_error_type(kNodeDied);
    set_status(job, "FAILED",
               fmt::format("The node ({}) that ran the job's driver died: {}", node.info.ip(),
                           node.info.death_message()),
               now);
  }
}

void SubmittedJobs::nodes_settled(Now now) {
  for (auto& [id, job] : jobs_) {
    if (terminal(job) || committing_.contains(id) || assigning_.contains(id)) continue;
    if (job.node_id().empty()) {
      // Its patience ends even if no node comes any more.
      start(job, now);
      continue;
    }
    const NodeState* node = env_.cluster.find(NodeId::from_binary(job.node_id()));
    if (node && node->alive()) continue;
    job.set_error_type(kNodeDied);
    set_status(job, "FAILED", "The node that ran the job's driver left while the head was away.",
               now);
  }
}

void SubmittedJobs::end_event() {
  while (static_cast<int64_t>(ended_.size()) > env_.options.settings.finished_jobs_kept) {
    env_.journal.erase(table::kSubmittedJobs, ended_.front());
    remove_log(jobs_.at(ended_.front()));
    jobs_.erase(ended_.front());
    ended_.pop_front();
  }
}

// Sent before a later job of the same name can start there, because both requests use one
// connection.
void SubmittedJobs::remove_log(const proto::SubmittedJob& job) {
  if (job.node_id().empty()) return;
  NodeState* node = env_.cluster.find(NodeId::from_binary(job.node_id()));
  if (node && node->usable()) env_.sink.remove_job_log(node->link(), job.submission_id());
}

void SubmittedJobs::persist(const proto::SubmittedJob& job) {
  env_.journal.put(table::kSubmittedJobs, job.submission_id(), job.SerializeAsString());
}

void SubmittedJobs::add_demands(std::vector<proto::Demand>* out) const {
  for (const auto& [id, job] : jobs_) {
    if (terminal(job) || committing_.contains(id) || !job.node_id().empty()) continue;
    proto::Demand demand;
    *demand.mutable_resources() = job.entrypoint_resources();
    demand.set_count(1);
    demand.set_what("job " + id);
    if (!job.entrypoint_labels().rules().empty()) {
      proto::NodeConstraint constraint;
      *constraint.mutable_hard() = job.entrypoint_labels();
      demand.set_where(scheduling::where_of(&constraint));
      const ResourceSet wanted = ResourceSet::from_proto(job.entrypoint_resources());
      demand.set_infeasible(
          scheduling::allowed_nodes(constraint, wanted, env_.cluster.candidates()).nodes.empty());
    }
    out->push_back(std::move(demand));
  }
}

std::optional<std::string> SubmittedJobs::record(const std::string& submission_id) const {
  auto it = jobs_.find(submission_id);
  if (it == jobs_.end()) return std::nullopt;
  return it->second.SerializeAsString();
}

bool SubmittedJobs::lives(const std::string& submission_id) const {
  auto it = jobs_.find(submission_id);
  return it != jobs_.end() && !terminal(it->second);
}

void SubmittedJobs::check_invariants() const {
  size_t ended = 0;
  for (const auto& [id, job] : jobs_) {
    RT_CHECK(job.submission_id() == id);
    ended += terminal(job);
    if (job.status() == "RUNNING") RT_CHECK(!job.node_id().empty());
  }
  RT_CHECK(ended == ended_.size());
  for (const auto& [id, replies] : stopping_) RT_CHECK(!replies.empty());
}

}  // namespace rt::head
