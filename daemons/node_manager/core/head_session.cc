#include "daemons/node_manager/core/head_session.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace rt::node {
namespace {
constexpr int64_t kFirstPauseUs = 20'000, kMaxPauseUs = 1'000'000;
}  // namespace

HeadSession::HeadSession(const Settings& settings, std::string head, bool is_head_node)
    : settings_(settings), head_(std::move(head)), knows_head_(is_head_node) {}

HeadSession::~HeadSession() = default;

HeadSession::Turn HeadSession::start(Now now) {
  lost_us_ = now.steady_us;
  return {.connect = true};
}

HeadSession::Turn HeadSession::failed(const Error& why, Now now) {
  if (stopped_) return {};
  if (why.code == Code::kUnauthenticated || why.code == Code::kWrongVersion ||
      why.code == Code::kWrongCluster || why.code == Code::kProtocol)
    return give_up(why, fmt::format("the head at {} refuses this node: {}", head_, why.message));
  const int64_t limit_ms =
      knows_head_ ? settings_.head_reconnect_timeout_ms : settings_.connect_timeout_ms;
  const int64_t away_us = now.steady_us - lost_us_;
  if (away_us > limit_ms * 1000)
    return give_up(why, fmt::format("the head at {} could not be reached for {} s: {}", head_,
                                    (away_us + 500'000) / 1'000'000, why.message));
  pause_us_ = pause_us_ == 0 ? kFirstPauseUs : std::min(kMaxPauseUs, pause_us_ * 2);
  due_us_ = now.steady_us + pause_us_;
  return {};
}

void HeadSession::registered() {
  registered_ = knows_head_ = true;
  pause_us_ = 0;
}

HeadSession::Turn HeadSession::refused(const Error& why) {
  if (stopped_) return {};
  if (may_recover(why.code)) return {.close = why};
  // An error that does not mean "away" is the head's decision.
  return give_up(why, fmt::format("the head at {} refuses this node: {}", head_, why.message));
}

bool HeadSession::lost(Now now) {
  if (!std::exchange(registered_, false)) return false;
  lost_us_ = now.steady_us;
  return true;
}

HeadSession::Turn HeadSession::tick(Now now) {
  if (due_us_ < 0 || now.steady_us < due_us_) return {};
  due_us_ = -1;
  return {.connect = true};
}

void HeadSession::stop() {
  stopped_ = true;
  due_us_ = -1;
}

HeadSession::Turn HeadSession::give_up(const Error& why, const std::string& message) {
  stop();
  return {.give_up = make_error(why.code, message)};
}

}  // namespace rt::node
