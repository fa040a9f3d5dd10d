// The record of what clients asked of the head's key-value data, and of what they were told. Keys
// are those of head::kv_key().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/proto/head.pb.h"

namespace rt::sim {

class KvLedger {
 public:
  // Names a write; each has a value of its own, unless it puts a function.
  struct Op {
    std::string key;
    size_t index = 0;
  };
  using Lives = std::function<bool(const JobId&)>;

  // ---- clients
  // `job`: the job that puts a function; nil: it is to stay.
  Op put(const std::string& key, const std::string& value, bool overwrite, const JobId& job,
         int64_t now_us);
  Op erase(const std::string& key, int64_t now_us);
  void answered(const Op& op, const Result<proto::KvPutReply>& reply, int64_t now_us);
  // A client has read the key, which no jobs keep, with this answer. It is a violation if a write
  // was answered before which the answer contradicts, or one that has put the value was refused.
  void check_read(const std::string& key, const std::optional<std::string>& value,
                  int64_t asked_us) const;

  // ---- entries that jobs keep
  // Whether somebody for whom the entry must be there was told that it is.
  bool must_be_there(const std::string& key, const Lives& lives) const;
  // Whether anybody is left for whom the entry may be there.
  bool may_be_there(const std::string& key, const Lives& lives) const;
  std::vector<std::string> keys() const;

 private:
  enum class Outcome { kUnknown, kDone, kRefused };
  struct Write {
    std::optional<std::string> value;  // none: it deletes
    bool overwrite = false;
    JobId job;
    int64_t asked_us = 0;
    int64_t answered_us = INT64_MAX;  // while there is no answer
    Outcome outcome = Outcome::kUnknown;
    bool changed_nothing = false;  // an older value stays
  };
  static bool precedes(const Write& first, const Write& second) {
    return first.answered_us <= second.asked_us;
  }
  // Whether another write was done after `write` and before `read_us`.
  bool is_overwritten(const std::vector<Write>& writes, const Write& write, int64_t read_us) const;
  // Whether a put that found the value of `refused` had to store it again for itself.
  bool is_confirmed(const std::vector<Write>& writes, const Write& refused) const;

  std::map<std::string, std::vector<Write>> writes_;  // by key
};

}  // namespace rt::sim
