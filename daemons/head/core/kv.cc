#include "daemons/head/core/kv.h"

#include <fmt/core.h>

namespace rt::head {
namespace {

constexpr size_t kMaxNameBytes = 4096;

}  // namespace

std::string kv_key(const std::string& ns, const std::string& key) {
  return fmt::format("{}:{}", ns.size(), ns) + key;
}

void Kv::recover(const Records& values, const Records& jobs) {
  for (const auto& [key, value] : values) entries_[key].value = value;
  for (const auto& [key, ids] : jobs) {
    auto it = entries_.find(key);
    if (it == entries_.end()) continue;
    for (size_t i = 0; i + JobId::kSize <= ids.size(); i += JobId::kSize) {
      JobId job = JobId::from_binary(std::string_view(ids).substr(i, JobId::kSize));
      it->second.jobs.insert(job);
      by_job_[job].insert(key);
    }
  }
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
  std::string key = kv_key(request.ns(), request.key());
  auto found = entries_.find(key);
  bool there = found != entries_.end() && found->second.value.has_value();
  Entry& entry = entries_[key];
  if (request.job_id().empty()) {
    // A write without a job keeps the entry for good, whatever jobs used it before.
    for (const JobId& job : entry.jobs) by_job_[job].erase(key);
    if (!entry.jobs.empty()) journal_.erase(table::kKvJobs, key);
    entry.jobs.clear();
  } else if (!there || !entry.jobs.empty()) {
    JobId job = JobId::from_binary(request.job_id());
    if (entry.jobs.insert(job).second) {
      by_job_[job].insert(key);
      journal_.put(table::kKvJobs, key, *jobs_record(key));
    }
  }
  if (!there || request.overwrite()) return write(key, request.value(), !there, std::move(reply));
  // Another client's write of this key may not be durable yet, so this reply waits for the disk,
  // too.
  proto::KvPutReply answer;
  if (entry.in_flight == 0) return reply(std::move(answer));
  write(key, entry.value, false, std::move(reply));
}

void Kv::write(const std::string& key, std::optional<std::string> value, bool answer,
               Reply<proto::KvPutReply> reply) {
  Entry& entry = entries_[key];
  if (entry.in_flight++ == 0) entry.committed = entry.value;
  entry.value = value;
  uint64_t version = entry.version = ++last_version_;
  if (value) {
    journal_.put(table::kKv, key, *value);
  } else {
    journal_.erase(table::kKv, key);
  }
  journal_.then([this, key, version, value = std::move(value), answer, reply = std::move(reply)](
                    const Status& status, Now) {
    write_finished(key, version, value, status);
    if (!status) return reply(status.error());
    proto::KvPutReply out;
    out.set_added(answer);
    reply(std::move(out));
  });
}

void Kv::write_finished(const std::string& key, uint64_t version,
                        const std::optional<std::string>& value, const Status& status) {
  auto it = entries_.find(key);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  if (status) {
    entry.committed = value;
  } else if (entry.version == version) {
    entry.value = entry.committed;
  }
  if (--entry.in_flight > 0) return;
  entry.committed.reset();
  if (entry.value) return;
  for (const JobId& job : entry.jobs) by_job_[job].erase(key);
  entries_.erase(it);
}

Result<proto::KvGetReply> Kv::get(const proto::KvGetRequest& request) const {
  RT_TRY(check_key(request.ns(), request.key()));
  proto::KvGetReply reply;
  auto it = entries_.find(kv_key(request.ns(), request.key()));
  if (it == entries_.end() || !it->second.value) return reply;
  reply.set_found(true);
  reply.set_value(*it->second.value);
  return reply;
}

void Kv::erase(const proto::KvGetRequest& request, Reply<proto::KvPutReply> reply) {
  if (Status key = check_key(request.ns(), request.key()); !key) return reply(key.error());
  std::string key = kv_key(request.ns(), request.key());
  auto it = entries_.find(key);
  if (it == entries_.end() || !it->second.value) return reply(proto::KvPutReply());
  if (!it->second.jobs.empty()) journal_.erase(table::kKvJobs, key);
  for (const JobId& job : it->second.jobs) by_job_[job].erase(key);
  it->second.jobs.clear();
  write(key, std::nullopt, true, std::move(reply));
}

Result<proto::KvListReply> Kv::list(const proto::KvListRequest& request) const {
  std::string space = kv_key(request.ns(), "");
  std::string prefix = space + request.prefix();
  proto::KvListReply reply;
  for (auto it = entries_.lower_bound(prefix);
       it != entries_.end() && it->first.starts_with(prefix); ++it) {
    if (it->second.value) reply.add_keys(it->first.substr(space.size()));
  }
  return reply;
}

void Kv::release_job(const JobId& job) {
  auto it = by_job_.find(job);
  if (it == by_job_.end()) return;
  std::set<std::string> keys = std::move(it->second);
  by_job_.erase(it);
  for (const std::string& key : keys) {
    Entry& entry = entries_.at(key);
    entry.jobs.erase(job);
    if (!entry.jobs.empty()) {
      journal_.put(table::kKvJobs, key, *jobs_record(key));
      continue;
    }
    journal_.erase(table::kKvJobs, key);
    write(key, std::nullopt, true, [](Result<proto::KvPutReply>) {});
  }
}

void Kv::for_each(
    const std::string& ns,
    const std::function<void(const std::string& key, size_t bytes, bool of_jobs)>& each) const {
  const std::string space = kv_key(ns, "");
  for (auto it = entries_.lower_bound(space); it != entries_.end() && it->first.starts_with(space);
       ++it) {
    if (it->second.value)
      each(it->first.substr(space.size()), it->second.value->size(), !it->second.jobs.empty());
  }
}

std::optional<std::string> Kv::record(const std::string& key) const {
  auto it = entries_.find(key);
  return it == entries_.end() ? std::nullopt : it->second.value;
}

std::optional<std::string> Kv::jobs_record(const std::string& key) const {
  auto it = entries_.find(key);
  if (it == entries_.end() || it->second.jobs.empty()) return std::nullopt;
  std::string ids;
  for (const JobId& job : it->second.jobs) ids += job.view();
  return ids;
}

void Kv::check_invariants() const {
  size_t pairs = 0;
  for (const auto& [key, entry] : entries_) {
    RT_CHECK(entry.value || entry.in_flight > 0);
    RT_CHECK(entry.in_flight >= 0);
    for (const JobId& job : entry.jobs) RT_CHECK(by_job_.at(job).contains(key));
    pairs += entry.jobs.size();
  }
  for (const auto& [job, keys] : by_job_) pairs -= keys.size();
  RT_CHECK(pairs == 0);
}

}  // namespace rt::head
