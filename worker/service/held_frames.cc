#include "worker/service/held_frames.h"

#include "common/rpc/client.h"

namespace rt::worker {

void HeldFrames::send(const std::shared_ptr<Link>& link, uint32_t type, std::string_view body,
                      Lent lent, bool ends_hold) {
  const uint64_t after = ends_hold ? objects_.refs().last_registration() : 0;
  if (lent.third_party.empty() && objects_.refs().confirmed(after) &&
      (held_.empty() || !held_.contains(link.get())))
    return write(*link, type, body, std::move(lent.refs));
  auto frame = std::make_shared<Frame>(type, std::string(body), std::move(lent.refs), after,
                                       static_cast<int>(lent.third_party.size()));
  Queue& queue = held_[link.get()];
  queue.link = link;
  queue.frames.push_back(frame);
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
  creation_answer_ = std::move(answer);
  creation_after_ = objects_.refs().last_registration();
  release();
}

void HeldFrames::release() {
  if (!creation_answer_ && held_.empty()) return;
  const RefTable& refs = objects_.refs();
  if (creation_answer_ && refs.confirmed(creation_after_))
    std::exchange(creation_answer_, nullptr)();
  for (auto at = held_.begin(); at != held_.end();) {
    auto& [link, frames] = at->second;
    while (!frames.empty() && link->open) {
      std::shared_ptr<Frame> frame = frames.front();
      if (frame->unasked > 0 || !refs.confirmed(frame->after)) break;
      frames.pop_front();
      write(*link, frame->type, frame->body, std::move(frame->refs));
    }
    at = frames.empty() || !link->open ? held_.erase(at) : std::next(at);
  }
  loop_.flush_all();
  released_();
}

}  // namespace rt::worker
