#include "worker/service/held_frames.h"

#include "common/rpc/client.h"

namespace rt::worker {

HeldFrames::HeldFrames(net::PollLoop& loop, const Objects& objects, PeerLinks& peers,
                       std::function<void()> released)
    : loop_(loop), objects_(objects), peers_(peers), released_(std::move(released)) {}

HeldFrames::~HeldFrames() = default;

void HeldFrames::send(const std::shared_ptr<Link>& link, uint32_t type, std::string_view body,
                      Lent lent, bool ends_hold) {
  HeldFrame waits;
  if (ends_hold) waits.after = objects_.refs().last_registration();
  waits.unasked = static_cast<int>(lent.third_party.size());
  if (lines_.passes(objects_.refs(), link, waits))
    return write(*link, type, body, std::move(lent.refs));
  auto frame =
      std::make_shared<Frame>(waits, type, std::string(body), std::move(lent.refs), nullptr);
  lines_.hold(link, frame);
  for (const auto& [owner, ids] : lent.third_party) lend(frame, link->peer, owner, ids);
  loop_.flush_all();
}

void HeldFrames::lend(const std::shared_ptr<Frame>& frame, const WorkerId& receiver,
                      const proto::WorkerAddress& owner, const std::vector<ObjectId>& ids) {
  constexpr int64_t kOwnerAnswersUs = 30'000'000;
  proto::BorrowRequest request;
  for (const ObjectId& id : ids) request.add_object_ids(id.binary());
  request.mutable_borrower()->set_worker_id(receiver.binary());
  peers_.with(owner, [this, frame, request](Result<std::shared_ptr<Link>> link) {
    assert_locked();
    auto done = [this, frame](Result<proto::BorrowReply>) {
      assert_locked();
      --frame->unasked;
      release();
    };
    if (!link) return done(link.error());
    rpc::call(*(*link)->connection, &proto::WorkerService::Stub::AddBorrower, request,
              kOwnerAnswersUs, done);
  });
}

void HeldFrames::write(Link& link, uint32_t type, std::string_view body, std::vector<Ref> refs) {
  link.connection->begin_flat(type).append(body);
  link.connection->end_flat();
  if (refs.empty()) return;
  if (peers_.find(link.peer) == &link) return;
  // Two connections to one process, because both sides had opened one. The borrows would be
  // returned over the other one, and must not overtake the frame, so they are held until the
  // receiver has answered behind it.
  rpc::call(*link.connection, &proto::WorkerService::Stub::AddBorrower, proto::BorrowRequest(), -1,
            [held = std::move(refs)](Result<proto::BorrowReply>) {});
}

void HeldFrames::answer_creation(std::function<void()> answer) {
  auto frame = std::make_shared<Frame>();
  frame->after = objects_.refs().last_registration();
  frame->answer = std::move(answer);
  lines_.hold(nullptr, std::move(frame));
  release();
}

void HeldFrames::release() {
  if (lines_.empty()) return;
  lines_.release(
      objects_.refs(), [](const std::shared_ptr<Link>& link) { return !link || link->open; },
      [this](const std::shared_ptr<Link>& link, Frame& frame) {
        assert_locked();
        if (frame.answer) return frame.answer();
        write(*link, frame.type, frame.body, std::move(frame.refs));
      });
  loop_.flush_all();
  released_();
}

}  // namespace rt::worker
