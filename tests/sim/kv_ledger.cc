#include "tests/sim/kv_ledger.h"

#include <fmt/core.h>

#include <algorithm>

#include "tests/sim/ledger.h"

namespace rt::sim {

KvLedger::Op KvLedger::put(const std::string& key, const std::string& value, bool overwrite,
                           const JobId& job, int64_t now_us) {
  std::vector<Write>& writes = writes_[key];
  writes.push_back({.value = value, .overwrite = overwrite, .job = job, .asked_us = now_us});
  return {key, writes.size() - 1};
}

KvLedger::Op KvLedger::erase(const std::string& key, int64_t now_us) {
  std::vector<Write>& writes = writes_[key];
  writes.push_back({.overwrite = true, .asked_us = now_us});
  return {key, writes.size() - 1};
}

void KvLedger::answered(const Op& op, const Result<proto::KvPutReply>& reply, int64_t now_us) {
  Write& write = writes_.at(op.key).at(op.index);
  if (!reply && may_recover(reply.error().code)) return;
  write.answered_us = now_us;
  write.outcome = reply ? Outcome::kDone : Outcome::kRefused;
  write.changed_nothing = reply && write.value && !write.overwrite && !reply->added();
}

bool KvLedger::is_overwritten(const std::vector<Write>& writes, const Write& write,
                              int64_t read_us) const {
  return std::ranges::any_of(writes, [&](const Write& later) {
    return later.outcome == Outcome::kDone && !later.changed_nothing && precedes(write, later) &&
           later.answered_us <= read_us;
  });
}

bool KvLedger::is_confirmed(const std::vector<Write>& writes, const Write& refused) const {
  return std::ranges::any_of(writes, [&](const Write& other) {
    return &other != &refused && other.value && !other.overwrite &&
           other.outcome != Outcome::kRefused && !precedes(refused, other);
  });
}

void KvLedger::check_read(const std::string& key, const std::optional<std::string>& value,
                          int64_t asked_us) const {
  static const std::vector<Write> kNone;
  auto found = writes_.find(key);
  const std::vector<Write>& writes = found == writes_.end() ? kNone : found->second;
  auto explains = [&](const Write& write) {
    if (write.value != value || write.changed_nothing) return false;
    const bool gone = write.outcome == Outcome::kRefused && write.answered_us <= asked_us &&
                      !is_confirmed(writes, write);
    return !gone && !is_overwritten(writes, write, asked_us);
  };
  // Before the first write there was no value.
  const Write never{.answered_us = 0};
  if (!value && !is_overwritten(writes, never, asked_us)) return;
  if (std::ranges::none_of(writes, explains))
    violation(fmt::format("a client reads {} under key {}, against what was answered before",
                          value ? "'" + *value + "'" : "nothing", key));
}

bool KvLedger::must_be_there(const std::string& key, const Lives& lives) const {
  auto found = writes_.find(key);
  if (found == writes_.end()) return false;
  const std::vector<Write>& writes = found->second;
  return std::ranges::all_of(writes, [](const Write& w) { return w.value.has_value(); }) &&
         std::ranges::any_of(writes, [&](const Write& write) {
           return write.outcome == Outcome::kDone && (write.job.is_nil() || lives(write.job));
         });
}

bool KvLedger::may_be_there(const std::string& key, const Lives& lives) const {
  auto found = writes_.find(key);
  return found != writes_.end() && std::ranges::any_of(found->second, [&](const Write& write) {
           return write.value && write.outcome != Outcome::kRefused &&
                  (write.job.is_nil() || lives(write.job));
         });
}

std::vector<std::string> KvLedger::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, writes] : writes_) out.push_back(key);
  return out;
}

}  // namespace rt::sim
