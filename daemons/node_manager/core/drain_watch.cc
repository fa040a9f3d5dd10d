#include "daemons/node_manager/core/drain_watch.h"

#include <fmt/core.h>

#include <string>

namespace rt::node {
namespace {

constexpr int64_t kLookAgainUs = 100'000;

Status check(const proto::DrainRequest& request) {
  if (request.reason() != proto::DRAINED_IDLE && request.reason() != proto::DRAINED_FOR_PREEMPTION)
    return make_error(
        Code::kInvalid,
        fmt::format("unknown drain reason {}: use {} (idle termination) or {} (preemption)",
                    static_cast<int>(request.reason()), static_cast<int>(proto::DRAINED_IDLE),
                    static_cast<int>(proto::DRAINED_FOR_PREEMPTION)));
  if (request.deadline_ms() < 0)
    return make_error(
        Code::kInvalid,
        fmt::format("the drain deadline is {} ms: it must not be negative", request.deadline_ms()));
  return {};
}

}  // namespace

DrainWatch::DrainWatch(const NodeCore& core) : core_(core) {}

DrainWatch::~DrainWatch() = default;

Result<proto::DrainReply> DrainWatch::ask(const proto::DrainRequest& request, int64_t store_used,
                                          Now now) {
  RT_TRY(check(request));
  proto::DrainReply reply;
  if (request.reason() == proto::DRAINED_IDLE) {
    std::string busy = core_.view().busy_with();
    if (store_used > 0)
      busy += fmt::format("{}objects of {} bytes", busy.empty() ? "" : ", ", store_used);
    if (!busy.empty()) {
      reply.set_why_not("it is not idle: " + busy);
      return reply;
    }
  }
  reply.set_accepted(true);
  deadline_us_ = request.deadline_ms() > 0 ? now.steady_us + request.deadline_ms() * 1000 : 0;
  drain_.emplace();
  drain_->set_reason(request.reason());
  drain_->set_message(request.message());
  if (request.deadline_ms() > 0)
    drain_->set_deadline_ms(now.wall_us / 1000 + request.deadline_ms());
  if (next_us_ < 0) next_us_ = now.steady_us + kLookAgainUs;
  return reply;
}

bool DrainWatch::tick(Now now) {
  if (next_us_ < 0 || now.steady_us < next_us_) return false;
  const bool late = deadline_us_ > 0 && now.steady_us >= deadline_us_;
  const bool leaves = late || core_.view().busy_with().empty();
  next_us_ = leaves ? -1 : now.steady_us + kLookAgainUs;
  return leaves;
}

}  // namespace rt::node
