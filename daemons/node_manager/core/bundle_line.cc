#include "daemons/node_manager/core/bundle_line.h"

#include <algorithm>

namespace rt::node {

const BundleAttempt* BundleLine::find(const GroupId& group) const {
  auto it = std::find_if(waiting_.begin(), waiting_.end(),
                         [&](const BundleAttempt& attempt) { return attempt.group == group; });
  return it == waiting_.end() ? nullptr : &*it;
}

void BundleLine::add(BundleAttempt attempt) {
  RT_CHECK(!find(attempt.group));
  waiting_.push_back(std::move(attempt));
}

void BundleLine::remove(const GroupId& group) {
  std::erase_if(waiting_, [&](const BundleAttempt& attempt) { return attempt.group == group; });
}

void BundleLine::end(const GroupId& group, int64_t epoch, const std::string& why) {
  auto [it, is_new] = ended_.try_emplace(group, Ended{epoch, why});
  if (!is_new && it->second.epoch < epoch) it->second = {epoch, why};
  if (!is_new) return;
  ended_order_.push_back(group);
  if (ended_order_.size() <= kMaxEnded) return;
  ended_.erase(ended_order_.front());
  ended_order_.pop_front();
}

const BundleLine::Ended* BundleLine::ended(const GroupId& group) const {
  auto it = ended_.find(group);
  return it == ended_.end() ? nullptr : &it->second;
}

void BundleLine::set_aside(const ResourceSet& amount, Now now) {
  if (now.steady_us >= paused_until_us_) aside_.add(amount);
}

}  // namespace rt::node
