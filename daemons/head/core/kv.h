// The key-value store: functions and classes of jobs, and data of programs and tools.
//
// A write is visible at once and answered when it is on disk; if the disk refuses it, the
// committed value comes back. An entry that jobs put is deleted when the last of these jobs has
// ended.
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

  // Fails with kInvalid for a malformed key or job id and with kResourceExhausted for a value
  // beyond kv_value_max_bytes.
  void put(const proto::KvPutRequest& request, Reply<proto::KvPutReply> reply);
  Result<proto::KvGetReply> get(const proto::KvGetRequest& request) const;
  // `added` of the reply says whether there was an entry to delete.
  void erase(const proto::KvGetRequest& request, Reply<proto::KvPutReply> reply);
  Result<proto::KvListReply> list(const proto::KvListRequest& request) const;
  // Deletes the entries that no other job keeps.
  void release_job(const JobId& job);
  // Calls `each` for every entry of a namespace. `of_jobs` says whether jobs put the entry, so
  // that it ends with them.
  void for_each(
      const std::string& ns,
      const std::function<void(const std::string& key, size_t bytes, bool of_jobs)>& each) const;

  std::optional<std::string> record(const std::string& key) const;
  std::optional<std::string> jobs_record(const std::string& key) const;
  void check_invariants() const;

 private:
  struct Entry {
    // No value while the deletion is on its way to the disk.
    std::optional<std::string> value;
    // The value on disk; only used while writes are in flight.
    std::optional<std::string> committed;
    int in_flight = 0;
    uint64_t version = 0;  // The version of the last write.
    // The jobs that keep the entry. If empty, it stays until a client deletes it.
    std::set<JobId> jobs;
  };
  Status check_key(const std::string& ns, const std::string& key) const;
  // Writes `value` (none: deletes) and replies when that is durable; `answer` becomes `added` of
  // the reply.
  void write(const std::string& key, std::optional<std::string> value, bool answer,
             Reply<proto::KvPutReply> reply);
  void write_finished(const std::string& key, uint64_t version,
                      const std::optional<std::string>& value, const Status& status);

  Journal& journal_;
  const Settings& settings_;
  std::map<std::string, Entry> entries_;  // By kv_key().
  std::map<JobId, std::set<std::string>> by_job_;
  uint64_t last_version_ = 0;
};

// The key is unambiguous: length of the namespace, namespace, key.
std::string kv_key(const std::string& ns, const std::string& key);

}  // namespace rt::head
