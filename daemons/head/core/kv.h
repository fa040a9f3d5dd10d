// The key-value store: functions and classes of jobs, and what programs and tools put there.
//
// A write is visible at once and answered when it is on disk; if the disk refuses it, the value
// that is there comes back. Entries that jobs put go when the last of these jobs has ended.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "daemons/head/core/journal.h"
#include "daemons/head/core/types.h"

namespace rt::head {

class Kv {
 public:
  Kv(Journal& journal, const Settings& settings) : journal_(journal), settings_(settings) {}

  void recover(const Records& values, const Records& jobs);

  void put(const proto::KvPutRequest& request, Reply<proto::KvPutReply> reply);
  Result<proto::KvGetReply> get(const proto::KvGetRequest& request) const;
  // `added` of the reply says whether something was there.
  void erase(const proto::KvGetRequest& request, Reply<proto::KvPutReply> reply);
  Result<proto::KvListReply> list(const proto::KvListRequest& request) const;
  void release_job(const JobId& job);
  // Of a namespace: key, bytes, whether jobs put it and take it along.
  void for_each(
      const std::string& ns,
      const std::function<void(const std::string& key, size_t bytes, bool of_jobs)>& each) const;

  std::optional<std::string> record(const std::string& key) const;
  std::optional<std::string> jobs_record(const std::string& key) const;
  void check_invariants() const;

 private:
  struct Entry {
    std::optional<std::string> value;      // none: deleted, on the way to the disk
    std::optional<std::string> committed;  // what is on disk while writes are in flight
    int in_flight = 0;
    uint64_t version = 0;  // of the last write
    std::set<JobId> jobs;  // empty: kept until deleted
  };
  Status check_key(const std::string& ns, const std::string& key) const;
  // Writes `value` (none: deletes) and answers when that is durable.
  void write(const std::string& key, std::optional<std::string> value, bool answer,
             Reply<proto::KvPutReply> reply);
  void settle(const std::string& key, uint64_t version, const std::optional<std::string>& value,
              const Status& status);

  Journal& journal_;
  const Settings& settings_;
  std::map<std::string, Entry> entries_;  // by kv_key()
  std::map<JobId, std::set<std::string>> by_job_;
  uint64_t last_version_ = 0;
};

// Unambiguous: length of the namespace, namespace, key.
std::string kv_key(const std::string& ns, const std::string& key);

}  // namespace rt::head
