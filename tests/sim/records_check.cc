#include "tests/sim/records_check.h"

#include <fmt/core.h>

#include <set>

namespace rt::sim {
namespace {

head::Records table_of(Scenario& s, const char* name) {
  auto table = s.disk().tables.find(name);
  return table == s.disk().tables.end() ? head::Records() : table->second;
}

std::string values_unsettled(Scenario& s) {
  const head::HeadView& view = s.head().core().view();
  const head::Records values = table_of(s, head::table::kKv);
  auto lives = [&view](const JobId& job) {
    return view.jobs().running(job) || view.actors().any_of_job(job);
  };
  std::set<std::string> shown;
  for (const char* ns : {"data", "fun", head::Packages::kNamespace}) {
    proto::KvListRequest all;
    all.set_ns(ns);
    const Result<proto::KvListReply> listed = view.kv_list(all);
    for (const std::string& key : listed->keys()) {
      proto::KvGetRequest one;
      one.set_ns(ns);
      one.set_key(key);
      const std::string name = head::kv_key(ns, key);
      shown.insert(name);
      auto stored = values.find(name);
      if (stored == values.end() || stored->second != view.kv_get(one)->value())
        return fmt::format("the disk has another value under {} than the head", name);
      if (!s.world().values.may_be_there(name, lives))
        return fmt::format("{} is there, and nobody is left who has put it", name);
    }
  }
  for (const auto& [key, value] : values) {
    if (!shown.contains(key)) return fmt::format("the disk has {}, and the head does not", key);
  }
  for (const auto& [key, jobs] : table_of(s, head::table::kKvJobs)) {
    if (!shown.contains(key)) return fmt::format("jobs keep {}, which is not there", key);
  }
  for (const std::string& key : s.world().values.keys()) {
    const bool function = key.starts_with(head::kv_key("fun", ""));
    if (function && !shown.contains(key) && s.world().values.must_be_there(key, lives))
      return fmt::format("{} is not there, and a job that lives has put it", key);
  }
  return "";
}

std::string jobs_unsettled(Scenario& s, bool all_kept) {
  const head::Records records = table_of(s, head::table::kSubmittedJobs);
  std::set<std::string> entrypoints;
  const proto::SubmittedJobsReply shown = s.head().core().view().submitted_jobs();
  for (const proto::SubmittedJob& job : shown.jobs()) {
    if (std::string why = s.world().jobs.untrue(job); !why.empty()) return why;
    entrypoints.insert(job.entrypoint());
    auto stored = records.find(job.submission_id());
    if (stored == records.end() || stored->second != job.SerializeAsString())
      return fmt::format("the disk has another record of job {} than the head",
                         job.submission_id());
  }
  if (records.size() != entrypoints.size()) return "the disk has jobs that the head does not show";
  const std::vector<JobRecord>& all = s.world().jobs.all();
  for (size_t job = 0; job < all.size(); ++job) {
    if (all[job].run == JobRecord::Run::kRuns) return fmt::format("job {} runs", job);
    if (all_kept && all[job].submission == JobRecord::Answer::kDone && !all[job].deletion_asked &&
        !entrypoints.contains(JobLedger::entrypoint(job)))
      return fmt::format("job {} is not known to the head", job);
  }
  const int64_t most = s.world().settings.finished_jobs_kept;
  if (shown.jobs_size() > most)
    return fmt::format("the head keeps {} jobs that have ended, not {}", shown.jobs_size(), most);
  return "";
}

}  // namespace

std::string records_unsettled(Scenario& s, bool all_kept) {
  std::string why = values_unsettled(s);
  return why.empty() ? jobs_unsettled(s, all_kept) : why;
}

}  // namespace rt::sim
