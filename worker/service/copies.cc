#include "worker/service/copies.h"

#include <utility>

#include "common/proto/worker.pb.h"
#include "common/rpc/client.h"

namespace rt::worker {

Copies::Copies(net::Loop& loop, const Context& context, PeerLinks& peers,
               const std::unique_ptr<store::StoreClient>& store)
    : loop_(loop), context_(context), peers_(peers), store_(store) {}

Copies::~Copies() = default;

void Copies::announce(const ObjectId& id, const proto::WorkerAddress& owner, Keepalive keep) {
  const WorkerId key = WorkerId::from_binary(owner.worker_id());
  std::vector<Copy>& copies = new_[key];
  copies.push_back({id, std::move(keep)});
  if (copies.size() > 1) return;
  loop_.post([this, key, owner] {
    assert_locked();
    if (auto told = new_.extract(key)) tell(owner, std::move(told.mapped()));
  });
}

void Copies::tell(const proto::WorkerAddress& owner, std::vector<Copy> copies) {
  peers_.with(owner, [this, copies = std::move(copies)](Result<std::shared_ptr<Link>> link) {
    assert_locked();
    if (!link || !store_) return;
    proto::AddLocation note;
    note.set_node_id(context_.node_id.binary());
    note.set_ip(context_.node_ip);
    note.set_port(context_.node_manager_port);
    for (const Copy& copy : copies) {
      note.set_object_id(copy.id.binary());
      rpc::notify(*(*link)->connection, &proto::WorkerService::Stub::AddObjectLocation, note);
    }
    (*link)->connection->flush();
    for (const Copy& copy : copies) store_->owner_knows(copy.id);
  });
}

}  // namespace rt::worker
