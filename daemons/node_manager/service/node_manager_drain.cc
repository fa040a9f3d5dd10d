// NodeManager: leaving the cluster on request.
#include <fmt/format.h>

#include "common/base/log.h"
#include "daemons/node_manager/service/node_manager.h"

namespace rt::node {
namespace {

constexpr int64_t kLookAgainUs = 100'000;

}  // namespace

std::string NodeManager::busy_with() const {
  std::string busy = core_->busy_with();
  if (store_ && store_->used() > 0)
    busy += fmt::format("{}objects of {} bytes", busy.empty() ? "" : ", ", store_->used());
  return busy;
}

Result<proto::DrainReply> NodeManager::drain(const proto::DrainRequest& request) {
  if (request.reason() != proto::DRAINED_IDLE &&
      request.reason() != proto::DRAINED_FOR_PREEMPTION) {
    return make_error(
        Code::kInvalid,
        fmt::format("unknown drain reason {}: use {} (idle termination) or {} (preemption)",
                    static_cast<int>(request.reason()), static_cast<int>(proto::DRAINED_IDLE),
                    static_cast<int>(proto::DRAINED_FOR_PREEMPTION)));
  }
  if (request.deadline_ms() < 0)
    return make_error(
        Code::kInvalid,
        fmt::format("the drain deadline is {} ms: it must not be negative", request.deadline_ms()));
  if (stopping_)
    return make_error(Code::kUnavailable,
                      "the node is leaving the cluster already: " + stop_reason_.message);
  proto::DrainReply reply;
  if (std::string busy = busy_with(); request.reason() == proto::DRAINED_IDLE && !busy.empty()) {
    reply.set_why_not("it is not idle: " + busy);
    return reply;
  }
  reply.set_accepted(true);
  drain_reason_ = {request.reason(), fmt::format("drained: {}", request.message()), Code::kOk,
                   kGentleStopUs};
  drain_deadline_us_ =
      request.deadline_ms() > 0 ? steady_now_us() + request.deadline_ms() * 1000 : 0;
  RT_INFO("draining ({}): this node takes no new work", request.message());
  proto::NodeDrain drain;
  drain.set_reason(request.reason());
  drain.set_message(request.message());
  if (request.deadline_ms() > 0)
    drain.set_deadline_ms(wall_now_us() / 1000 + request.deadline_ms());
  drive([&](NodeCore& core, Now now) { core.drain(drain, now); });
  if (!drain_timer_) leave_when_idle();
  return reply;
}

void NodeManager::leave_when_idle() {
  drain_timer_ = loop_.run_after(kLookAgainUs, [this] {
    drain_timer_ = 0;
    bool late = drain_deadline_us_ > 0 && steady_now_us() >= drain_deadline_us_;
    if (late || core_->busy_with().empty()) return stop(drain_reason_);
    leave_when_idle();
  });
}

}  // namespace rt::node
