#include "tests/sim/worker_replies.h"

namespace rt::sim {

uint64_t WorkerReplies::keep(const ChannelPtr& owner) {
  auto address = std::make_shared<proto::WorkerAddress>();
  address->set_worker_id(WorkerId::random(world_.rng).binary());
  owners_[address->worker_id()] = owner;
  kept_[++last_kept_] = worker::Ref(refs_.borrow(ObjectId::random(world_.rng), address, false));
  refs_.register_kept();
  refs_.check_invariants();
  return last_kept_;
}

void WorkerReplies::drop(uint64_t kept) {
  kept_.erase(kept);
  refs_.drain_releases();
  refs_.check_invariants();
}

// An owner that is busy answers late.
void WorkerReplies::add_borrower(const proto::WorkerAddress& owner,
                                 const std::vector<ObjectId>& ids, const WorkerId&) {
  const int64_t busy_us = world_.rng.chance(0.3) ? world_.between(0, 100'000) : 0;
  owners_.extract(owner.worker_id())
      .mapped()
      ->call<proto::Empty>(
          "add borrower",
          [&world = world_, busy_us](Channel&, Channel::Answer<proto::Empty> answer) {
            if (busy_us == 0) return answer(proto::Empty());
            world.clock.after(busy_us, "owner was busy", 0, [answer] { answer(proto::Empty()); });
          },
          // If the owner is gone, reading the object will say so.
          [this, ids](Result<proto::Empty>) {
            refs_.confirm_borrows(ids);
            refs_.check_invariants();
            release();
          });
}

void WorkerReplies::send(const ChannelPtr& to, Write write) {
  worker::HeldFrame waits;
  waits.after = refs_.last_registration();
  if (lines_.passes(refs_, to, waits)) return write();
  lines_.hold(to, std::make_shared<Frame>(waits, std::move(write)));
  lines_.check_invariants();
}

void WorkerReplies::release() {
  if (lines_.empty()) return;
  lines_.release(
      refs_, [](const ChannelPtr& to) { return !to || to->open(); },
      [](const ChannelPtr&, const Frame& frame) { frame.write(); });
  lines_.check_invariants();
  released_();
}

size_t WorkerReplies::held() const {
  size_t held = 0;
  lines_.for_each([&held](const ChannelPtr&, const Frame&) { ++held; });
  return held;
}

}  // namespace rt::sim
