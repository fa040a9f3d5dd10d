// Replies and items to the owners of tasks, which leave at once or are held, as FrameLines decides.
//
// A reply ends the hold that its receiver has on the arguments. A frame that carries references
// lends them: their owners are asked to count the receiver, and this process holds them until the
// frame has left. "Reference counting" in docs/tasks.md has the rule.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/net/poll_loop.h"
#include "worker/core/frame_lines.h"
#include "worker/ref.h"
#include "worker/service/link.h"
#include "worker/service/lock.h"
#include "worker/service/objects.h"
#include "worker/service/peer_links.h"

namespace rt::worker {

class HeldFrames {
 public:
  // The references in a frame to objects that this process has borrowed itself.
  struct Lent {
    std::vector<Ref> refs;
    // Objects that the receiver does not own either, by owner and once for each reference.
    std::vector<std::pair<proto::WorkerAddress, std::vector<ObjectId>>> third_party;
  };

  // `released` is called whenever something may have left. All references must outlive this object.
  HeldFrames(net::PollLoop& loop, const Objects& objects, PeerLinks& peers,
             std::function<void()> released);
  ~HeldFrames();

  // Frames to one link leave in this order. With `ends_hold` the frame waits for the registrations
  // that have been made.
  void send(const std::shared_ptr<Link>& link, uint32_t type, std::string_view body, Lent lent,
            bool ends_hold) REQUIRES(worker_mutex);
  // Calls `answer` after the registrations that have been made. It is the answer to the creation of
  // an actor, so there is only one.
  void answer_creation(std::function<void()> answer) REQUIRES(worker_mutex);
  // Sends what has nothing to wait for any more. Cheap when nothing is held.
  void release() REQUIRES(worker_mutex);
  bool empty() const REQUIRES(worker_mutex) { return lines_.empty(); }

 private:
  struct Frame : HeldFrame {
    uint32_t type = 0;
    std::string body;
    std::vector<Ref> refs;
    // Sends it instead, if it is the answer to the creation of an actor.
    std::function<void()> answer;
  };

  void write(Link& link, uint32_t type, std::string_view body, std::vector<Ref> refs)
      REQUIRES(worker_mutex);
  void lend(const std::shared_ptr<Frame>& frame, const WorkerId& receiver,
            const proto::WorkerAddress& owner, const std::vector<ObjectId>& ids)
      REQUIRES(worker_mutex);

  net::PollLoop& loop_;
  const Objects& objects_;
  PeerLinks& peers_;
  const std::function<void()> released_;
  FrameLines<std::shared_ptr<Link>, Frame> lines_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
