#include "tests/sim/head_records.h"

#include <fmt/core.h>

#include <algorithm>

#include "tests/sim/sim_node.h"

namespace rt::sim {
namespace {

constexpr int64_t kNodeCallTimeoutUs = 30'000'000;
constexpr int64_t kJustUploadedUs = 60'000'000;  // as in daemons/head/core/packages.cc
const std::string kPackages = head::kv_key(head::Packages::kNamespace, "");

std::string package_of(const std::string& key) {
  return key.substr(kPackages.size(), key.find('#', kPackages.size()) - kPackages.size());
}

// The packages among the values, with their sizes.
std::map<std::string, int64_t> packages_in(const head::Records& values) {
  std::map<std::string, int64_t> out;
  for (const auto& [key, value] : values) {
    if (key.starts_with(kPackages)) out[package_of(key)] += static_cast<int64_t>(value.size());
  }
  return out;
}

}  // namespace

// ---- key-value data

void HeadRecords::kv_put(const proto::KvPutRequest& request,
                         const Answer<proto::KvPutReply>& answer) {
  head::Records before;
  const bool package = request.ns() == head::Packages::kNamespace;
  if (package) before = environment_.shown(head::table::kKv);
  auto refused = std::make_shared<bool>(false);
  environment_.drive([&](head::HeadCore& core, Now now) {
    core.kv_put(request, now, [answer, refused](Result<proto::KvPutReply> reply) {
      *refused = !reply;
      answer(std::move(reply));
    });
  });
  if (package) check_packages(request, !*refused, before);
}

void HeadRecords::kv_delete(const proto::KvGetRequest& request,
                            const Answer<proto::KvPutReply>& answer) {
  environment_.drive([&](head::HeadCore& core, Now now) { core.kv_delete(request, now, answer); });
}

void HeadRecords::kv_get(const proto::KvGetRequest& request,
                         const Answer<proto::KvGetReply>& answer) {
  const Result<proto::KvGetReply> reply = environment_.core.view().kv_get(request);
  if (!reply) return answer(reply);
  const std::string key = head::kv_key(request.ns(), request.key());
  const head::Records shown = environment_.shown(head::table::kKv);
  auto value = shown.find(key);
  // The entry of a job that is over is gone, even if the disk has refused to delete it.
  const bool may_miss = request.ns() != "data";
  const bool same = reply->found() ? value != shown.end() && reply->value() == value->second
                                   : value == shown.end() || may_miss;
  if (!same)
    violation(
        fmt::format("the head shows '{}' under key {}, which is neither on its disk nor on "
                    "the way there",
                    reply->value(), key));
  const head::HeadView& view = environment_.core.view();
  auto runs = [&view](const JobId& job) { return view.jobs().running(job); };
  if (!reply->found() && request.ns() == "fun" && world_.values.must_be_there(key, runs))
    violation(fmt::format("{} is not there, and a job that runs has put it", key));
  answer(reply);
}

void HeadRecords::kv_list(const proto::KvListRequest& request,
                          const Answer<proto::KvListReply>& answer) {
  const Result<proto::KvListReply> reply = environment_.core.view().kv_list(request);
  if (reply && request.ns() == "data") {
    const std::string space = head::kv_key(request.ns(), "");
    std::vector<std::string> expected;
    for (const auto& [key, value] : environment_.shown(head::table::kKv)) {
      if (key.starts_with(space + request.prefix())) expected.push_back(key.substr(space.size()));
    }
    if (!std::ranges::equal(expected, reply->keys()))
      violation("the head lists keys that are neither on its disk nor on the way there");
  }
  answer(reply);
}

// ---- packages

bool HeadRecords::is_whole(const head::Records& values, const std::string& package) {
  auto manifest = values.find(kPackages + package);
  if (manifest == values.end()) return false;
  for (int piece = std::stoi(manifest->second) - 1; piece >= 0; --piece) {
    if (!values.contains(fmt::format("{}{}#{}", kPackages, package, piece))) return false;
  }
  return true;
}

void HeadRecords::check_disk() const {
  const head::Records& values = environment_.disk.at(head::table::kKv);
  for (const auto& [name, bytes] : packages_in(values)) {
    if (values.contains(kPackages + name) && !is_whole(values, name))
      violation(fmt::format("the disk has package {} without all of its pieces", name));
  }
}

void HeadRecords::check_packages(const proto::KvPutRequest& request, bool accepted,
                                 const head::Records& before) {
  const head::Records after = environment_.shown(head::table::kKv);
  const auto old = packages_in(before), now = packages_in(after);
  const std::string mine = package_of(head::kv_key(request.ns(), request.key()));
  const int64_t now_us = world_.clock.now_us();
  int64_t bytes = 0, needed = static_cast<int64_t>(request.value().size());
  // Jobs keep the others.
  for (const auto& [name, size] : now) bytes += name.starts_with("of-") ? 0 : size;
  for (const auto& [name, size] : old) needed += size;
  const int64_t most = world_.settings.packages_max_bytes;
  if (accepted && request.job_id().empty() && bytes > most)
    violation(fmt::format("there are {} bytes of packages, {} are allowed", bytes, most));
  for (const auto& [name, size] : old) {
    if (now.contains(name)) continue;
    if (needed <= most) violation(fmt::format("package {} goes although there is room", name));
    auto uploaded = uploaded_us_.find(name);
    if (uploaded != uploaded_us_.end() && now_us - uploaded->second < kJustUploadedUs)
      violation(fmt::format("package {} goes, which has just been uploaded", name));
  }
  if (accepted && request.job_id().empty()) uploaded_us_[mine] = now_us;
  for (size_t job = 0; job < world_.jobs.all().size(); ++job) {
    const JobRecord& known = world_.jobs.all()[job];
    if (!known.had_package) continue;
    const auto shown = environment_.core.view().submitted_job(known.plan.submission_id);
    if (!shown || JobLedger::job_of(shown->entrypoint()) != job) continue;
    const bool runs = shown->status() == "PENDING" || shown->status() == "RUNNING";
    if (runs && !is_whole(after, known.plan.package))
      violation(fmt::format("package {} goes, which job {} names", known.plan.package, job));
  }
}

// ---- submitted jobs

void HeadRecords::submit_job(const proto::SubmitJobRequest& request,
                             const Answer<proto::SubmitJobReply>& answer) {
  JobRecord& known = world_.jobs.record(JobLedger::job_of(request.entrypoint()));
  auto on_disk = environment_.disk.find(head::table::kKv);
  if (!known.plan.package.empty() && on_disk != environment_.disk.end())
    known.had_package = is_whole(on_disk->second, known.plan.package) &&
                        is_whole(environment_.shown(head::table::kKv), known.plan.package);
  environment_.drive([&](head::HeadCore& core, Now now) { core.submit_job(request, now, answer); });
}

void HeadRecords::get_job(const std::string& id, const Answer<proto::SubmittedJob>& answer) {
  answer(environment_.core.view().submitted_job(id));
}

void HeadRecords::stop_job(const std::string& id, const Answer<proto::StopJobReply>& answer) {
  environment_.drive(
      [&](head::HeadCore& core, Now now) { core.stop_submitted_job(id, now, answer); });
}

void HeadRecords::delete_job(const std::string& id, const Answer<proto::Empty>& answer) {
  environment_.drive(
      [&](head::HeadCore& core, Now now) { core.delete_submitted_job(id, now, answer); });
}

void HeadRecords::report_job(Channel& from, const proto::SubmittedJob& report,
                             const Answer<proto::Empty>& answer) {
  // A node that an earlier head has given up may join the next one, and the job stays lost.
  const auto shown = environment_.core.view().submitted_job(report.submission_id());
  if (shown && shown->entrypoint() == report.entrypoint() &&
      shown->error_type() == "JOB_SUPERVISOR_ACTOR_DIED" &&
      !shown->message().starts_with("The node no longer has"))
    world_.jobs.record(JobLedger::job_of(report.entrypoint())).end_unheard = true;
  environment_.drive([&](head::HeadCore& core, Now now) {
    core.report_submitted_job(from.connection(), report, now, answer);
  });
}

void HeadRecords::start_job(const head::NodeLink& node,
                            const proto::StartJobProcessRequest& request) {
  Channel* to = environment_.channel(node.conn);
  if (!to) return;  // The node registers again, or is lost.
  to->call<proto::Empty>(
      "start job",
      [request](Channel& at, Answer<proto::Empty> answer) {
        node_at(at).reports().start_job(request.job(), answer);
      },
      [this, node = node.node,
       id = request.job().submission_id()](const Result<proto::Empty>& reply) {
        environment_.drive([&](head::HeadCore& core, Now now) {
          core.start_job_answered(id, node, reply ? Status() : Status(reply.error()), now);
        });
      },
      kNodeCallTimeoutUs);
}

void HeadRecords::stop_job(const head::NodeLink& node, const std::string& id) {
  const Answer<proto::StopJobReply> answered = [this, id](Result<proto::StopJobReply> reply) {
    environment_.drive(
        [&](head::HeadCore& core, Now now) { core.stop_job_answered(id, reply, now); });
  };
  Channel* to = environment_.channel(node.conn);
  if (!to) violation("the head asks a node that is not connected to stop a job");
  to->call<proto::StopJobReply>(
      "stop job",
      [id](Channel& at, Answer<proto::StopJobReply> answer) {
        answer(node_at(at).reports().stop_job(id));
      },
      answered, kNodeCallTimeoutUs);
}

void HeadRecords::remove_job_log(const head::NodeLink& node, const std::string& id) {
  if (Channel* to = environment_.channel(node.conn))
    to->send("remove job log", [id](Channel& at) { node_at(at).reports().remove_log(id); });
}

// ---- lines of logs

void HeadRecords::subscribed(head::ConnId conn, const proto::SubscribeRequest& request) {
  Follower& follower = followers_[conn];
  follower.errors |= request.errors();
  if (!request.logs_of_job().empty()) follower.jobs.insert(request.logs_of_job());
}

void HeadRecords::publish(Channel& from, const proto::HeadEvent& lines) {
  Lines expected;
  for (const auto& [conn, follower] : followers_) {
    std::string text;
    for (const proto::LogLines& part : lines.logs()) {
      if (follower.jobs.contains(part.job_id())) text += part.lines(0) + "\n";
    }
    for (const proto::Notice& notice : lines.notices()) {
      if (notice.job_id().empty() ? follower.errors : follower.jobs.contains(notice.job_id()))
        text += notice.text() + "\n";
    }
    if (!text.empty()) expected[conn] = text;
  }
  published_.emplace();
  Status published;
  environment_.drive(
      [&](head::HeadCore& core, Now) { published = core.publish_logs(from.connection(), lines); });
  const Lines sent = *std::exchange(published_, std::nullopt);
  if (published && sent != expected)
    violation("lines of logs go to others than those that follow their job");
}

void HeadRecords::pushed(head::ConnId conn, const proto::HeadEvent& event) {
  if (!published_) return;
  for (const proto::LogLines& part : event.logs()) (*published_)[conn] += part.lines(0) + "\n";
  for (const proto::Notice& notice : event.notices()) (*published_)[conn] += notice.text() + "\n";
}

// ---- samples

void HeadRecords::sample(const proto::NodeSample& sample) {
  const NodeId id = NodeId::from_binary(sample.node_id());
  const head::NodeState* node = environment_.core.view().cluster().find(id);
  samples_.add(id, sample, node && node->alive());
}

}  // namespace rt::sim
