#include "daemons/head/core/kv.h"

#include <fmt/core.h>

namespace rt::head {
namespace {

constexpr size_t kMaxNameBytes = 4096;

}  // namespace

Kv::Kv(Journal& journal, const Settings& settings) : journal_(journal), settings_(settings) {}

Kv::~Kv() = default;

std::string kv_key(const std::string& ns, const std::string& key) {
  return fmt::format("{}:{}", ns.size(), ns) + key;
}

void Kv::recover(const Records& values, const Records& jobs) {
  for (const auto& [key, value] : values) entries_[key].shown.value = value;
  for (const auto& [key, ids] : jobs) {
    if (!entries_.contains(key)) continue;
    change(key, [&ids](Entry& entry) {
      for (size_t i = 0; i + JobId::kSize <= ids.size(); i += JobId::kSize)
        entry.shown.jobs.insert(JobId::from_binary(std::string_view(ids).substr(i, JobId::kSize)));
    });
  }
}

std::set<JobId> Kv::Entry::keepers() const {
  std::set<JobId> jobs = shown.jobs;
  jobs.insert(committed.jobs.begin(), committed.jobs.end());
  for (const Writing& write : writing)
    jobs.insert(write.state.jobs.begin(), write.state.jobs.end());
  return jobs;
}

template <class F>
void Kv::change(const std::string& key, F change) {
  Entry& entry = entries_[key];
  const std::set<JobId> before = entry.keepers();
  change(entry);
  const std::set<JobId> after = entry.keepers();
  for (const JobId& job : after) by_job_[job].insert(key);
  for (const JobId& job : before) {
    if (after.contains(job)) continue;
    auto keys = by_job_.find(job);
    keys->second.erase(key);
    if (keys->second.empty()) by_job_.erase(keys);
  }
  if (!entry.shown.value && entry.writing.empty()) entries_.erase(key);
}

Status Kv::check_key(const std::string& ns, const std::string& key) const {
  if (key.empty()) return make_error(Code::kInvalid, "key-value: the key is empty");
  if (ns.size() > kMaxNameBytes || key.size() > kMaxNameBytes)
    return make_error(
        Code::kInvalid,
        fmt::format("key-value: namespace and key may have {} bytes, these have {} and {}",
                    kMaxNameBytes, ns.size(), key.size()));
  return {};
}

void Kv::put(const proto::KvPutRequest& request, Reply<proto::KvPutReply> reply) {
  if (Status key = check_key(request.ns(), request.key()); !key) return reply(key.error());
  if (!request.job_id().empty() && !JobId::is_valid(request.job_id()))
    return reply(make_error(Code::kInvalid, "key-value: the job id has a wrong size"));
  if (static_cast<int64_t>(request.value().size()) > settings_.kv_value_max_bytes) {
    return reply(make_error(
        Code::kResourceExhausted,
        fmt::format("a value of {} bytes for key '{}' is larger than kv_value_max_bytes ({}); put "
                    "it into the object store instead",
                    request.value().size(), request.key(), settings_.kv_value_max_bytes)));
  }
  const std::string key = kv_key(request.ns(), request.key());
  auto found = entries_.find(key);
  State next = found == entries_.end() ? State() : found->second.shown;
  const bool there = next.value.has_value(), replaces = !there || request.overwrite();
  const std::set<JobId> jobs = next.jobs;
  if (request.job_id().empty()) {
    // A write without a job keeps the entry for good, whatever jobs used it before.
    next.jobs.clear();
  } else if (!there || !jobs.empty()) {
    next.jobs.insert(JobId::from_binary(request.job_id()));
  }
  // Another client's write of this key may not be durable yet, so this reply waits for the disk,
  // too.
  const bool in_flight = found != entries_.end() && !found->second.writing.empty();
  if (!replaces && !in_flight && next.jobs == jobs) return reply(proto::KvPutReply());
  if (replaces) next.value = request.value();
  write(key, std::move(next), replaces || in_flight, !there, std::move(reply));
}

void Kv::write(const std::string& key, State next, bool writes_value, bool answer,
               Reply<proto::KvPutReply> reply) {
  bool writes_jobs = false;
  change(key, [&](Entry& entry) {
    // A write that is in flight may fail, and with it the jobs that it wrote.
    writes_jobs = entry.shown.jobs != next.jobs || (!entry.writing.empty() && !next.jobs.empty());
    if (entry.writing.empty()) entry.committed = entry.shown;
    entry.shown = next;
    entry.version = ++last_version_;
    entry.writing.push_back({entry.version, std::move(next)});
  });
  if (writes_value) write_value(key);
  if (writes_jobs) write_jobs(key);
  journal_.then([this, key, answer, reply = std::move(reply)](const Status& status, Now) {
    write_finished(key, status);
    if (!status) return reply(status.error());
    proto::KvPutReply out;
    out.set_added(answer);
    reply(std::move(out));
  });
}

void Kv::write_value(const std::string& key) {
  if (auto value = record(key)) {
    journal_.put(table::kKv, key, *std::move(value));
  } else {
    journal_.erase(table::kKv, key);
    released_ = true;
  }
}

void Kv::write_jobs(const std::string& key) {
  released_ = true;
  if (auto jobs = jobs_record(key)) {
    journal_.put(table::kKvJobs, key, *std::move(jobs));
  } else {
    journal_.erase(table::kKvJobs, key);
  }
}

// Batches are answered in the order in which they were sent.
void Kv::write_finished(const std::string& key, const Status& status) {
  change(key, [&status](Entry& entry) {
    Writing done = std::move(entry.writing.front());
    entry.writing.pop_front();
    if (status) {
      entry.committed = std::move(done.state);
    } else if (entry.version == done.version) {
      entry.shown = entry.committed;
    }
    if (entry.writing.empty()) entry.committed = {};
  });
}

Result<proto::KvGetReply> Kv::get(const proto::KvGetRequest& request) const {
  RT_TRY(check_key(request.ns(), request.key()));
  proto::KvGetReply reply;
  auto it = entries_.find(kv_key(request.ns(), request.key()));
  if (it == entries_.end() || !it->second.shown.value) return reply;
  reply.set_found(true);
  reply.set_value(*it->second.shown.value);
  return reply;
}

void Kv::erase(const proto::KvGetRequest& request, Reply<proto::KvPutReply> reply) {
  if (Status key = check_key(request.ns(), request.key()); !key) return reply(key.error());
  std::string key = kv_key(request.ns(), request.key());
  auto it = entries_.find(key);
  if (it == entries_.end() || !it->second.shown.value) return reply(proto::KvPutReply());
  write(key, {}, true, true, std::move(reply));
}

Result<proto::KvListReply> Kv::list(const proto::KvListRequest& request) const {
  std::string space = kv_key(request.ns(), "");
  std::string prefix = space + request.prefix();
  proto::KvListReply reply;
  for (auto it = entries_.lower_bound(prefix);
       it != entries_.end() && it->first.starts_with(prefix); ++it) {
    if (it->second.shown.value) reply.add_keys(it->first.substr(space.size()));
  }
  return reply;
}

std::vector<JobId> Kv::jobs() const {
  std::vector<JobId> out;
  for (const auto& [job, keys] : by_job_) out.push_back(job);
  return out;
}

void Kv::release_job(const JobId& job) {
  auto it = by_job_.find(job);
  if (it == by_job_.end()) return;
  // An entry that nobody keeps any more is gone, whether or not the disk takes that now: its record
  // is written again until it does. A write of it that is in flight brings nothing back.
  auto release = [&job](State& state) {
    if (state.jobs.erase(job) == 0) return false;
    if (state.jobs.empty()) state.value.reset();
    return true;
  };
  const std::set<std::string> keys = it->second;
  for (const std::string& key : keys) {
    bool was_kept = false, is_gone = false;
    change(key, [&](Entry& entry) {
      release(entry.committed);
      for (Writing& write : entry.writing) release(write.state);
      was_kept = release(entry.shown);
      is_gone = was_kept && !entry.shown.value;
      if (is_gone) entry.version = ++last_version_;
    });
    if (was_kept) write_jobs(key);
    if (is_gone) write_value(key);
  }
}

void Kv::for_each(
    const std::string& ns,
    const std::function<void(const std::string& key, size_t bytes, bool of_jobs)>& each) const {
  const std::string space = kv_key(ns, "");
  for (auto it = entries_.lower_bound(space); it != entries_.end() && it->first.starts_with(space);
       ++it) {
    const State& shown = it->second.shown;
    if (shown.value) each(it->first.substr(space.size()), shown.value->size(), !shown.jobs.empty());
  }
}

std::optional<std::string> Kv::record(const std::string& key) const {
  auto it = entries_.find(key);
  return it == entries_.end() ? std::nullopt : it->second.shown.value;
}

std::optional<std::string> Kv::jobs_record(const std::string& key) const {
  auto it = entries_.find(key);
  if (it == entries_.end() || it->second.shown.jobs.empty()) return std::nullopt;
  std::string ids;
  for (const JobId& job : it->second.shown.jobs) ids += job.view();
  return ids;
}

void Kv::check_invariants() const {
  size_t pairs = 0;
  for (const auto& [key, entry] : entries_) {
    RT_CHECK(entry.shown.value || !entry.writing.empty());
    RT_CHECK(entry.shown.value || entry.shown.jobs.empty());
    const bool settled = !entry.committed.value && entry.committed.jobs.empty();
    RT_CHECK(settled || !entry.writing.empty());
    const std::set<JobId> keepers = entry.keepers();
    for (const JobId& job : keepers) RT_CHECK(by_job_.at(job).contains(key));
    pairs += keepers.size();
  }
  for (const auto& [job, keys] : by_job_) pairs -= keys.size();
  RT_CHECK(pairs == 0);
}

}  // namespace rt::head
