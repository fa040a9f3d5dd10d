#include "worker/core/head_contact.h"

#include <fmt/core.h>

#include <utility>

namespace rt::worker {
namespace {
// After a failure, and after the loss of a connection that was open.
constexpr int64_t kPauseUs = 100'000, kLossPauseUs = 50'000;
}  // namespace

HeadContact::HeadContact(const Settings& settings, const std::string& head)
    : settings_(settings), head_(head) {}

HeadContact::~HeadContact() = default;

HeadContact::Turn HeadContact::wanted() { return {.connect = !std::exchange(connecting_, true)}; }

HeadContact::Turn HeadContact::failed(Error why, Now now) {
  connecting_ = false;
  if (lost_us_ < 0 || std::exchange(nobody_asked_, false)) lost_us_ = now.steady_us;
  if (!may_recover(why.code)) return {.give_up = std::move(why)};
  const int64_t away_us = now.steady_us - lost_us_;
  if (away_us < settings_.head_reconnect_timeout_ms * 1000 && !stopped_) {
    due_us_ = now.steady_us + kPauseUs;
    return {};
  }
  why.message = fmt::format("the cluster's head at {} could not be reached for {} s: {}", head_,
                            (away_us + 500'000) / 1'000'000, why.message);
  return {.give_up = std::move(why)};
}

std::optional<proto::SubscribeRequest> HeadContact::connected() {
  connecting_ = nobody_asked_ = false;
  lost_us_ = due_us_ = -1;
  proto::SubscribeRequest all = kept_;
  for (const ActorId& id : actors_) all.add_actor_ids(id.binary());
  if (all.actor_ids().empty() && all.logs_of_job().empty()) return {};
  return all;
}

void HeadContact::lost(bool needed, Now now) {
  lost_us_ = now.steady_us;
  nobody_asked_ = !needed && actors_.empty() && kept_.logs_of_job().empty();
  if (!nobody_asked_) due_us_ = now.steady_us + kLossPauseUs;
}

HeadContact::Turn HeadContact::tick(Now now) {
  if (due_us_ < 0 || now.steady_us < due_us_) return {};
  due_us_ = -1;
  return wanted();
}

std::optional<std::string> HeadContact::subscription_failed(const Error& why) const {
  if (may_recover(why.code)) return {};
  return "The head, which was started again, does not tell this process of its actors: " +
         why.message;
}

bool HeadContact::keep_actor(const ActorId& id) { return actors_.insert(id).second; }

void HeadContact::forget_actor(const ActorId& id) { actors_.erase(id); }

}  // namespace rt::worker
