// The key-value store: functions and classes of jobs, and data of programs and tools.
//
// A write is visible at once and answered when it is on disk; if the disk refuses it, the
// committed value and the jobs that kept it come back. An entry that jobs put is deleted when the
// last of these jobs has ended; if the disk refuses that, it is gone all the same, and deleted on
// the disk later.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemons/head/core/journal.h"
#include "daemons/head/core/types.h"

namespace rt::head {

class Kv {
 public:
  Kv(Journal& journal, const Settings& settings);
  ~Kv();

  void recover(const Records& values, const Records& jobs);

  // Fails with kInvalid for a malformed key or job id and with kResourceExhausted for a value
  // beyond kv_value_max_bytes.
  void put(const proto::KvPutRequest& request, Reply<proto::KvPutReply> reply);
  Result<proto::KvGetReply> get(const proto::KvGetRequest& request) const;
  // `added` of the reply says whether there was an entry to delete.
  void erase(const proto::KvGetRequest& request, Reply<proto::KvPutReply> reply);
  Result<proto::KvListReply> list(const proto::KvListRequest& request) const;
  // The jobs that keep entries.
  std::vector<JobId> jobs() const;
  // Deletes the entries that no other job keeps.
  void release_job(const JobId& job);
  // Calls `each` for every entry of a namespace. `of_jobs` says whether jobs put the entry, so
  // that it ends with them.
  void for_each(
      const std::string& ns,
      const std::function<void(const std::string& key, size_t bytes, bool of_jobs)>& each) const;

  // Whether something was deleted, or the jobs that keep an entry were written, since the last
  // call.
  bool take_released() { return std::exchange(released_, false); }

  std::optional<std::string> record(const std::string& key) const;
  std::optional<std::string> jobs_record(const std::string& key) const;
  void check_invariants() const;

 private:
  struct State {
    std::optional<std::string> value;  // None: there is no entry.
    // The jobs that keep the entry. If empty, it stays until a client deletes it.
    std::set<JobId> jobs;
  };
  struct Writing {
    uint64_t version = 0;
    State state;
  };
  struct Entry {
    // No value while the deletion is on its way to the disk.
    State shown;
    uint64_t version = 0;  // The version of `shown`.
    // The writes in flight, the oldest first, and the state on disk before them, which is only used
    // while there are any.
    std::deque<Writing> writing;
    State committed;

    // All jobs that keep one of these states.
    std::set<JobId> keepers() const;
  };
  Status check_key(const std::string& ns, const std::string& key) const;
  // Brings the entry into the state `next` and replies when that is durable; `answer` becomes
  // `added` of the reply. `writes_value`: the value is written, not only the jobs that keep it.
  void write(const std::string& key, State next, bool writes_value, bool answer,
             Reply<proto::KvPutReply> reply);
  void write_finished(const std::string& key, const Status& status);
  void write_value(const std::string& key);
  void write_jobs(const std::string& key);
  // Changes an entry and keeps by_job_ true. Forgets the entry if it has no value and no write.
  template <class F>
  void change(const std::string& key, F change);

  Journal& journal_;
  const Settings& settings_;
  std::map<std::string, Entry> entries_;           // By kv_key().
  std::map<JobId, std::set<std::string>> by_job_;  // See Entry::keepers().
  uint64_t last_version_ = 0;
  bool released_ = false;
};

// The key is unambiguous: length of the namespace, namespace, key.
std::string kv_key(const std::string& ns, const std::string& key);

}  // namespace rt::head
