#include "daemons/node_manager/process/job_processes.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "common/base/log_names.h"
#include "daemons/node_manager/core/job_reports.h"
#include "daemons/node_manager/process/env_vars.h"

namespace rt::node {
namespace {

constexpr int64_t kStopGraceUs = 3'000'000, kMaxStopGraceUs = 3600'000'000;
constexpr int kMessageLines = 10, kSetupLines = 30;
constexpr int64_t kMaxMessageChars = 20'000;
// Runs python/ray/_private/runtime_env/entrypoint.py, which reports failure with kNoEnvironment.
constexpr char kMakeEnvironment[] =
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from ray._private.runtime_env.entrypoint "
    "import main; main()";
constexpr char kNoEnvironment[] = "The runtime environment could not be made: ";

// Restricts the id to what is safe in a file name.
bool valid_submission_id(const std::string& id) {
  return !id.empty() && id.size() <= 200 && id.front() != '.' &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

std::string from_environment(const std::map<std::string, std::string>& env, const char* name) {
  auto it = env.find(name);
  if (it != env.end()) return it->second;
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string append_path(const std::string& list, const std::string& entry) {
  return list.empty() ? entry : list + ":" + entry;
}

// Reads how the job is to be stopped: RAY_JOB_STOP_SIGNAL and RAY_JOB_STOP_WAIT_TIME_S.
Status read_stop(const std::map<std::string, std::string>& env, int* signal, int64_t* grace_us) {
  std::string name = from_environment(env, "RAY_JOB_STOP_SIGNAL"),
              seconds = from_environment(env, "RAY_JOB_STOP_WAIT_TIME_S");
  *signal = name == "SIGINT" ? SIGINT : SIGTERM;
  *grace_us = kStopGraceUs;
  if (!name.empty() && name != "SIGINT" && name != "SIGTERM")
    return make_error(Code::kInvalid,
                      fmt::format("RAY_JOB_STOP_SIGNAL is '{}': it takes SIGTERM or SIGINT", name));
  if (seconds.empty()) return {};
  double value = 0;
  auto [end, error] = std::from_chars(seconds.data(), seconds.data() + seconds.size(), value);
  if (error != std::errc() || end != seconds.data() + seconds.size() || !(value >= 0)) {
    return make_error(Code::kInvalid,
                      fmt::format("RAY_JOB_STOP_WAIT_TIME_S is '{}': it takes seconds", seconds));
  }
  *grace_us = std::min(kMaxStopGraceUs, static_cast<int64_t>(std::min(value, 1e6) * 1e6));
  return {};
}

}  // namespace

JobProcesses::JobProcesses(net::Loop& loop, Reaper& reaper, Options options, Report report)
    : loop_(loop), reaper_(reaper), options_(std::move(options)), report_(std::move(report)) {}

JobProcesses::~JobProcesses() {
  for (auto& [id, job] : jobs_) {
    if (job.kill_timer) loop_.cancel(job.kill_timer);
    if (job.group_timer) loop_.cancel(job.group_timer);
    reaper_.watch(job.process.pid, [](int) {});
    signal_group(job.process, SIGKILL);
  }
}

std::string JobProcesses::log_path(const std::string& submission_id) const {
  return fmt::format("{}/logs/{}", options_.session_dir, job_log_name(submission_id));
}

std::map<std::string, std::string> JobProcesses::environment(
    const std::map<std::string, std::string>& requested) const {
  std::map<std::string, std::string> env = requested;
  env.try_emplace("RAY_ADDRESS", options_.head_address);
  env.try_emplace("PYTHONUNBUFFERED", "1");  // people follow the log while the job runs
  if (!options_.python_path.empty())
    env["PYTHONPATH"] = append_path(from_environment(env, "PYTHONPATH"), options_.python_path);
  // Debian has no plain `python`. An entrypoint that uses it gets the node's interpreter, unless
  // PATH has a `python` already.
  std::error_code ec;
  std::string bin = options_.session_dir + "/bin";
  std::filesystem::create_directories(bin, ec);
  std::filesystem::create_symlink(options_.python, bin + "/python", ec);
  env["PATH"] = append_path(from_environment(env, "PATH"), bin);
  return env;
}

Status JobProcesses::start(const proto::SubmittedJob& request,
                           const std::map<std::string, std::string>& env) {
  const std::string& id = request.submission_id();
  if (!valid_submission_id(id))
    return make_error(
        Code::kInvalid,
        fmt::format("'{}' is not a valid submission id: letters, digits, '-', '_' and '.' only",
                    id));
  if (jobs_.contains(id))
    return make_error(Code::kAlreadyExists, fmt::format("job {} is running already", id));
  const auto ended = ended_.find(id);
  if (ended != ended_.end() && is_same_submission(ended->second, request))
    return make_error(Code::kAlreadyExists,
                      fmt::format("job {} has run: the head has yet to take its end", id));
  if (request.entrypoint().empty()) return make_error(Code::kInvalid, "the job has no entrypoint");
  SpawnOptions spawn;
  spawn.argv = {"/bin/sh", "-c", request.entrypoint()};
  spawn.env = environment(env);
  bool makes_environment = false;
  if (!request.runtime_env_json().empty()) {
    RT_ASSIGN(RuntimeEnvParts parts, parse_runtime_env(request.runtime_env_json(), spawn.env));
    for (const auto& [name, value] : parts.variables) spawn.env[name] = value;
    // The package is found wherever the program looks for its own modules.
    if (parts.variables.contains("PYTHONPATH") && !options_.python_path.empty())
      spawn.env["PYTHONPATH"] = append_path(spawn.env["PYTHONPATH"], options_.python_path);
    makes_environment = parts.other.has_value();
    // A Python program makes the environment first and then replaces itself by the entrypoint.
    if (makes_environment)
      spawn.argv = {options_.python,      "-c",
                    kMakeEnvironment,     options_.python_path,
                    options_.session_dir, request.entrypoint()};
  }
  int stop_signal = SIGTERM;
  int64_t stop_grace_us = 0;
  RT_TRY(read_stop(spawn.env, &stop_signal, &stop_grace_us));
  RT_ASSIGN(RotatedLog::Limits limits, RotatedLog::limits_of(spawn.env));
  if (ended != ended_.end()) ended_.erase(ended);
  forget_output(id);
  RT_ASSIGN(auto log, RotatedLog::create(log_path(id), limits));
  log->append(fmt::format("{}Running entrypoint for job {}: {}\n",
                          makes_environment ? "The runtime environment is set up first.\n" : "", id,
                          request.entrypoint()));
  Fd writing_end;
  RT_ASSIGN(auto output, JobOutput::open(loop_, std::move(log), &writing_end));
  outputs_[id] = std::move(output);
  spawn.output_fd = writing_end.get();
  spawn.new_session = true;
  auto pwd = env.find("PWD");
  if (pwd != env.end() && ::access(pwd->second.c_str(), X_OK) == 0) spawn.cwd = pwd->second;
  // The guard is there before the job can start anything.
  std::unique_ptr<JobGuard> guard;
  spawn.before_exec = [&guard](int pid) -> Status {
    RT_ASSIGN(guard, JobGuard::start(pid));
    return {};
  };
  RT_ASSIGN(ProcessId process, spawn_process(spawn));
  Job& job = jobs_[id];
  job.info = request;
  job.info.set_status("RUNNING");
  job.info.set_pid(process.pid);
  job.process = process;
  job.guard = std::move(guard);
  job.makes_environment = makes_environment;
  job.stop_signal = stop_signal;
  job.stop_grace_us = stop_grace_us;
  reaper_.watch(process.pid, [this, id](int status) { exited(id, status); });
  report_(job.info);
  return {};
}

// A job that is being stopped ends with its whole process group: the shell dies of the signal at
// once, while the programs it started still clean up.
void JobProcesses::exited(const std::string& submission_id, int status) {
  auto it = jobs_.find(submission_id);
  if (it == jobs_.end()) return;
  if (!it->second.stopping || it->second.killed) return finish(submission_id, status);
  it->second.ended = status;
  wait_for_group(submission_id);
}

void JobProcesses::wait_for_group(const std::string& submission_id) {
  constexpr int64_t kPollUs = 20'000;
  Job& job = jobs_.at(submission_id);
  if (!group_exists(job.process)) return finish(submission_id, *job.ended);
  job.group_timer = loop_.run_after(kPollUs, [this, submission_id] {
    jobs_.at(submission_id).group_timer = 0;
    wait_for_group(submission_id);
  });
}

void JobProcesses::kill(const std::string& submission_id) {
  Job& job = jobs_.at(submission_id);
  job.killed = true;
  signal_group(job.process, SIGKILL);
  if (job.ended) finish(submission_id, *job.ended);
}

void JobProcesses::finish(const std::string& submission_id, int status) {
  auto it = jobs_.find(submission_id);
  Job job = std::move(it->second);
  jobs_.erase(it);
  if (job.kill_timer) loop_.cancel(job.kill_timer);
  if (job.group_timer) loop_.cancel(job.group_timer);
  // Processes that the shell left behind in its group end with it.
  signal_group(job.process, SIGKILL);
  JobOutput& output = *outputs_.at(submission_id);
  output.drain();
  std::string how;
  if (WIFSIGNALED(status)) {
    job.info.set_exit_code(-WTERMSIG(status));
    how = fmt::format("Job entrypoint command was killed by signal {}", WTERMSIG(status));
  } else {
    job.info.set_exit_code(WEXITSTATUS(status));
    how = fmt::format("Job entrypoint command failed with exit code {}", WEXITSTATUS(status));
  }
  job.info.set_exited(true);
  job.info.set_end_time_ms(wall_now_us() / 1000);
  if (job.stopping) {
    job.info.set_status("STOPPED");
    job.info.set_message("Job was intentionally stopped.");
  } else if (status == 0) {
    job.info.set_status("SUCCEEDED");
    job.info.set_message("Job finished successfully.");
  } else {
    job.info.set_status("FAILED");
    std::string tail = text_tail(output.log()->tail(kMaxMessageChars),
                                 job.makes_environment ? kSetupLines : kMessageLines);
    bool no_environment = job.makes_environment &&
                          job.info.exit_code() == static_cast<int>(Code::kRuntimeEnvSetup) &&
                          tail.find(kNoEnvironment) != std::string::npos;
    job.info.set_error_type(no_environment ? "RUNTIME_ENV_SETUP_FAILURE"
                                           : "JOB_ENTRYPOINT_COMMAND_ERROR");
    if (no_environment)
      how = "The runtime environment could not be set up, the entrypoint was not started";
    job.info.set_message(
        fmt::format("{}, last available logs (truncated to 20,000 chars):\n{}", how, tail));
  }
  ended_[submission_id] = job.info;
  report_(job.info);
}

void JobProcesses::acknowledge(const proto::SubmittedJob& report) {
  const auto ended = ended_.find(report.submission_id());
  if (ended != ended_.end() && is_same_submission(ended->second, report)) ended_.erase(ended);
}

std::vector<proto::SubmittedJob> JobProcesses::reports() const {
  std::vector<proto::SubmittedJob> all;
  for (const auto& [id, job] : jobs_) all.push_back(job.info);
  for (const auto& [id, job] : ended_) all.push_back(job);
  return all;
}

bool JobProcesses::stop(const std::string& submission_id) {
  auto it = jobs_.find(submission_id);
  if (it == jobs_.end()) return false;
  Job& job = it->second;
  if (job.stopping) return true;
  job.stopping = true;
  signal_group(job.process, job.stop_signal);
  job.kill_timer = loop_.run_after(job.stop_grace_us, [this, submission_id] {
    auto found = jobs_.find(submission_id);
    if (found == jobs_.end()) return;
    found->second.kill_timer = 0;
    kill(submission_id);
  });
  return true;
}

void JobProcesses::stop_all(int signal) {
  std::vector<std::string> ids;
  for (auto& [id, job] : jobs_) {
    job.stopping = true;
    ids.push_back(id);
    if (signal != SIGKILL) signal_group(job.process, signal);
  }
  if (signal != SIGKILL) return;
  for (const std::string& id : ids) kill(id);
}

Result<JobProcesses::Chunk> JobProcesses::read_log(const std::string& submission_id, int64_t offset,
                                                   int64_t max_bytes) const {
  if (!valid_submission_id(submission_id))
    return make_error(Code::kInvalid,
                      fmt::format("'{}' is not a valid submission id", submission_id));
  auto it = outputs_.find(submission_id);
  if (it == outputs_.end())
    return make_error(Code::kNotFound,
                      fmt::format("job {} has no log on this node", submission_id));
  const RotatedLog& log = *it->second->log();
  offset = std::max<int64_t>(0, offset);
  int64_t limit = max_bytes <= 0
                      ? static_cast<int64_t>(options_.max_log_chunk)
                      : std::min<int64_t>(max_bytes, static_cast<int64_t>(options_.max_log_chunk));
  RT_ASSIGN(auto piece, log.read(offset, limit));
  Chunk chunk{"", piece.offset + static_cast<int64_t>(piece.data.size()), log.size()};
  if (piece.offset > offset) chunk.data = removed_note(piece.offset - offset, offset > 0);
  chunk.data += piece.data;
  return chunk;
}

void JobProcesses::remove_log(const std::string& submission_id) {
  if (!valid_submission_id(submission_id) || jobs_.contains(submission_id)) return;
  ended_.erase(submission_id);
  forget_output(submission_id);
  RotatedLog::remove(log_path(submission_id));
}

const RotatedLog* JobProcesses::log_of_file(const std::string& name) const {
  auto it = outputs_.find(std::string(job_of_log(name)));
  return it == outputs_.end() ? nullptr : it->second->log();
}

void JobProcesses::forget_output(const std::string& submission_id) {
  std::erase_if(forgotten_, [](const auto& output) { return output->ended(); });
  auto it = outputs_.find(submission_id);
  if (it == outputs_.end()) return;
  it->second->drop_log();
  if (!it->second->ended()) forgotten_.push_back(std::move(it->second));
  outputs_.erase(it);
}

}  // namespace rt::node
