// The replies of a worker, which leave at once or are held: models worker/service/held_frames. The
// code of a task may keep a reference that came with an argument; then the worker registers it with
// its owner, and replies wait for the answer.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/sim/world.h"
#include "worker/core/frame_lines.h"

namespace rt::sim {

class WorkerReplies final : private worker::RefSink {
 public:
  using Write = std::function<void()>;

  // `released` is called whenever something may have left.
  WorkerReplies(World& world, const WorkerId& id, std::function<void()> released)
      : world_(world), refs_(*this, id), released_(std::move(released)) {}
  ~WorkerReplies() override { refs_.close(); }

  // The code of the user keeps a reference to a new object of the process at the other end, until
  // drop() with the number that is returned.
  uint64_t keep(const ChannelPtr& owner);
  void drop(uint64_t kept);
  // Calls `write`, which sends a reply to `to`, when everything that was registered until now is
  // confirmed. With a null `to` it answers the creation of the actor.
  void send(const ChannelPtr& to, Write write);
  // To be called when a connection is over: what is held for its other end is lost.
  void release();
  size_t held() const;

 private:
  struct Frame : worker::HeldFrame {
    Write write;
  };

  void add_borrower(const proto::WorkerAddress& owner, const std::vector<ObjectId>& ids,
                    const WorkerId& borrower) override;
  void remove_borrower(const proto::WorkerAddress&, const ObjectId&, uint32_t) override {}
  void free_object(worker::ObjectEntry&) override {}
  void actor_out_of_scope(const ActorId&) override {}
  void stream_dropped(const TaskId&) override {}

  World& world_;
  worker::RefTable refs_;
  worker::FrameLines<ChannelPtr, Frame> lines_;
  const std::function<void()> released_;
  std::map<std::string, ChannelPtr> owners_;  // by the id that this process knows them by
  std::map<uint64_t, worker::Ref> kept_;
  uint64_t last_kept_ = 0;
};

}  // namespace rt::sim
