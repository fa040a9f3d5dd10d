// Tells the owners of borrowed objects that this node has copies of them now, and then the store
// that they know. Copies that come in the same turn of the loop go to their owner together. If an
// owner cannot be reached, or this process ends before, the store drops each copy with its last
// pin.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/net/loop.h"
#include "common/proto/common.pb.h"
#include "daemons/object_store/client/store_client.h"
#include "worker/service/lock.h"
#include "worker/service/peer_links.h"

namespace rt::worker {

class Copies {
 public:
  // All references must outlive this object. `store` is null on a node without one.
  Copies(net::Loop& loop, const Context& context, PeerLinks& peers,
         const std::unique_ptr<store::StoreClient>& store);
  ~Copies();

  // `keep` pins the copy until the store knows that the owner does.
  void announce(const ObjectId& id, const proto::WorkerAddress& owner, Keepalive keep)
      REQUIRES(worker_mutex);

 private:
  struct Copy {
    ObjectId id;
    Keepalive keep;
  };
  void tell(const proto::WorkerAddress& owner, std::vector<Copy> copies) REQUIRES(worker_mutex);

  net::Loop& loop_;
  const Context& context_;
  PeerLinks& peers_;
  const std::unique_ptr<store::StoreClient>& store_;
  std::unordered_map<WorkerId, std::vector<Copy>> new_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
