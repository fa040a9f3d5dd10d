#include "observability/state/profile_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/base/ids.h"
#include "common/base/utf8.h"
#include "observability/state/sources.h"

namespace rt::state {
namespace {

using HeadStub = proto::HeadService::Stub;
using NodeManagerStub = proto::NodeManagerService::Stub;
// So many processes are asked at the same time, because all of them should see the same interval.
constexpr size_t kProfilesAtOnce = 1024;

struct Process {
  proto::ProcessInfo info;
  proto::Node node;
};

// A process to ask, and its title in the answer.
struct Chosen {
  Sources::Place place;
  std::string title;
};

bool all_digits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return c >= '0' && c <= '9'; });
}

// Finds the processes that a word of the user names.
class Finder {
 public:
  Finder(Sources& sources, const std::string& only_node)
      : sources_(sources), only_node_(only_node) {}

  Result<std::vector<Chosen>> find(const std::string& target) {
    if (target == "head") return head();
    RT_TRY(learn_nodes());
    if (target == "node-manager" || target == "object-store") return daemons(target);
    RT_TRY(learn_processes());
    RT_TRY(learn_actors());
    if (target == "all") {
      return choose([](const Process&) { return true; });
    }
    RT_ASSIGN(auto by_job, of_job(target));
    if (!by_job.empty()) return by_job;
    if (all_digits(target)) {
      auto found = choose(
          [&](const Process& process) { return std::to_string(process.info.pid()) == target; });
      if (!found.empty()) return found;
      return not_found(fmt::format(
          "no worker or driver of this cluster has the process id {}{}: `rayctl stack` lists all",
          target, on_node()));
    }
    std::string bytes = from_hex(target);
    if (TaskId::is_valid(bytes)) return of_task(target);
    auto found = choose([&](const Process& process) {
      const std::string& id = process.info.actor_id();
      if (!bytes.empty() && (id == bytes || process.info.worker_id() == bytes)) return true;
      auto actor = actors_.find(WorkerId::from_binary(process.info.worker_id()));
      return actor != actors_.end() &&
             (actor->second.spec().name() == target || actor->second.spec().class_name() == target);
    });
    if (!found.empty()) return found;
    return not_found(
        fmt::format("nothing that runs{} is called '{}': give a process id, an id of a worker, an "
                    "actor, a running task or a job, an actor's name or class, "
                    "a submission id, or head, node-manager, object-store",
                    on_node(), target));
  }

  Status learn_nodes() {
    proto::GetNodesRequest request;
    request.set_alive_only(true);
    RT_ASSIGN(auto reply, sources_.ask_head(&HeadStub::GetNodes, request));
    for (const auto& node : reply.nodes()) {
      if (only_node_.empty() || to_hex(node.node_id()) == only_node_ || node.ip() == only_node_)
        nodes_.push_back(node);
    }
    if (nodes_.empty())
      return make_error(Code::kNotFound,
                        only_node_.empty() ? "the cluster has no living node"
                                           : fmt::format("there is no living node {}", only_node_));
    return {};
  }

  Status learn_processes() {
    std::vector<Sources::Place> places;
    for (const auto& node : nodes_) places.push_back(Sources::place_of(node));
    sources_.ask_each(
        places, &NodeManagerStub::ListProcesses,
        [&](size_t at, const proto::ProcessesReply& reply) {
          for (const auto& process : reply.processes()) {
            if (process.pid() > 0 && process.alive() && !process.socket_path().empty())
              processes_.push_back({process, nodes_[at]});
          }
        });
    return {};
  }

  struct Running {
    Process process;
    int running_there = 0;
  };
  // The processes that run a task; attempt -1 matches any attempt.
  std::vector<Running> running(const std::string& task_id, int64_t attempt) {
    std::vector<Sources::Place> places;
    for (const auto& process : processes_) places.push_back(place_of(process));
    std::vector<Running> found;
    sources_.ask_each(places, &proto::WorkerService::Stub::ListTasks,
                      [&](size_t at, const proto::TaskRecords& reply) {
                        int count = 0;
                        bool here = false;
                        for (const auto& task : reply.tasks()) {
                          if (task.state() != proto::TaskRecord::RUNNING) continue;
                          ++count;
                          here |= to_hex(task.task_id()) == task_id &&
                                  (attempt < 0 || task.attempt() == attempt);
                        }
                        if (here) found.push_back({processes_[at], count});
                      });
    return found;
  }

  // Makes the error for a target that was not found. It may be where nobody answered.
  Error not_found(std::string why) const {
    if (!sources_.missing().empty())
      why += fmt::format(". It may be where there was no answer: {}",
                         fmt::join(sources_.missing(), "; "));
    return make_error(Code::kNotFound, std::move(why));
  }

 private:
  std::string on_node() const { return only_node_.empty() ? "" : " on node " + only_node_; }

  static Sources::Place place_of(const Process& process) {
    return {{net::Address::tcp(process.node.ip(), process.node.port()), "worker",
             to_hex(process.info.worker_id())},
            fmt::format("process {} on {}", process.info.pid(), process.node.ip()),
            true};
  }

  Result<std::vector<Chosen>> head() {
    return std::vector<Chosen>{{{sources_.head_target(), "head", false}, "head"}};
  }

  Result<std::vector<Chosen>> daemons(const std::string& which) {
    std::vector<Chosen> chosen;
    for (const auto& node : nodes_) {
      auto place = Sources::place_of(node, which == "object-store" ? "store" : "self", which);
      chosen.push_back({place, place.name});
    }
    return chosen;
  }

  Status learn_actors() {
    proto::ListActorsRequest request;
    request.set_all_namespaces(true);
    RT_ASSIGN(auto reply, sources_.ask_head(&HeadStub::ListActors, request));
    for (const auto& actor : reply.actors()) {
      if (actor.state() == proto::ACTOR_ALIVE)
        actors_[WorkerId::from_binary(actor.address().worker_id())] = actor;
    }
    return {};
  }

  template <class Wanted>
  std::vector<Chosen> choose(Wanted wanted) {
    std::vector<Chosen> chosen;
    for (const auto& process : processes_) {
      if (!wanted(process)) continue;
      std::string title =
          fmt::format("{} {}", process.info.is_driver() ? "driver" : "worker", process.info.pid());
      if (auto actor = actors_.find(WorkerId::from_binary(process.info.worker_id()));
          actor != actors_.end()) {
        const auto& spec = actor->second.spec();
        title += printable(spec.name().empty()
                               ? fmt::format(" (actor {})", spec.class_name())
                               : fmt::format(" (actor {} '{}')", spec.class_name(), spec.name()));
      }
      if (nodes_.size() > 1) title += " on " + process.node.ip();
      chosen.push_back({place_of(process), title});
    }
    return chosen;
  }

  // The processes of a job; empty if `target` is no job's id.
  Result<std::vector<Chosen>> of_job(const std::string& target) {
    std::string job;
    if (target.size() == 2 * JobId::nil().binary().size()) {
      job = from_hex(target);
    } else if (!all_digits(target)) {
      RT_ASSIGN(auto submitted, sources_.ask_head(&HeadStub::ListSubmittedJobs, proto::Empty()));
      for (const auto& one : submitted.jobs()) {
        if (one.submission_id() == target) job = one.job_id();
      }
    }
    if (job.empty()) return std::vector<Chosen>();
    return choose([&](const Process& process) { return process.info.job_id() == job; });
  }

  Result<std::vector<Chosen>> of_task(const std::string& task_id) {
    auto found = running(task_id, -1);
    if (found.empty())
      return not_found(fmt::format(
          "task {} does not run now: `rayctl list tasks` says what became of it", task_id));
    return choose([&](const Process& process) {
      return process.info.worker_id() == found[0].process.info.worker_id();
    });
  }

  Sources& sources_;
  const std::string only_node_;
  std::vector<proto::Node> nodes_;
  std::vector<Process> processes_;
  std::map<WorkerId, proto::ActorInfo> actors_;  // Living ones.
};

}  // namespace

Result<ProfileAnswer> profile_processes(const Cluster& cluster, const ProfileQuery& query) {
  const int64_t duration_us = query.profile ? query.profile->duration_ms() * 1000 : 0;
  RT_ASSIGN(auto sources, Sources::connect(cluster.head_address, cluster.token, query.timeout_us,
                                           cluster.connect_us));
  Finder finder(*sources, query.node);
  RT_ASSIGN(auto chosen, finder.find(query.target));
  std::vector<Sources::Place> places;
  for (const auto& one : chosen) {
    places.push_back(one.place);
    if (query.profile)
      places.back().gone = "the process ended during the profile; its samples are lost";
  }
  // By index in `chosen`, so that the order is kept.
  std::map<size_t, proto::StackSamples> answers;
  auto keep = [&](size_t at, const proto::StackSamples& samples) { answers[at] = samples; };
  using Asked = proto::ProfileService::Stub;
  if (query.profile) {
    proto::ProfileRequest request = *query.profile;
    request.set_native(query.native);
    sources->ask_each(places, &Asked::Profile, request,
                      {.at_once = kProfilesAtOnce, .takes_us = duration_us, .last = true}, keep);
  } else {
    proto::StacksRequest request;
    request.set_native(query.native);
    sources->ask_each(places, &Asked::GetStacks, request,
                      {.at_once = kProfilesAtOnce, .last = true}, keep);
  }
  ProfileAnswer answer;
  answer.missing = sources->missing();
  for (auto& [at, samples] : answers) answer.all.push_back({chosen[at].title, std::move(samples)});
  if (answer.all.empty() && !chosen.empty()) {
    return make_error(Code::kUnavailable, answer.missing.empty()
                                              ? "everything that was to be profiled has just ended"
                                              : fmt::format("{}", fmt::join(answer.missing, "; ")));
  }
  return answer;
}

Result<TaskPlace> find_running_task(const Cluster& cluster, const std::string& task_id,
                                    int64_t attempt, int64_t timeout_us) {
  RT_ASSIGN(auto sources,
            Sources::connect(cluster.head_address, cluster.token, timeout_us, cluster.connect_us));
  Finder finder(*sources, "");
  RT_TRY(finder.learn_nodes());
  RT_TRY(finder.learn_processes());
  auto found = finder.running(task_id, attempt);
  if (found.empty())
    return finder.not_found(
        fmt::format("task {} does not run now, or its attempt {} has ended", task_id, attempt));
  return TaskPlace{found[0].process.info.pid(), to_hex(found[0].process.node.node_id()),
                   found[0].running_there};
}

}  // namespace rt::state
