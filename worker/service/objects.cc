#include "worker/service/objects.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/environment.h"
#include "common/rpc/client.h"
#include "worker/core/death.h"
#include "worker/service/pump.h"
#include "worker/session_over.h"

namespace rt::worker {

namespace {

store::Location to_store(const ObjectLocation& location, int64_t size) {
  return {location.node, location.ip, location.port, size};
}

std::vector<store::Location> to_store(const ObjectEntry& entry) {
  std::vector<store::Location> out;
  for (const auto& at : entry.details().locations) out.push_back(to_store(at, entry.size));
  return out;
}

bool reports_unseen_errors() {
  const std::string ignored = environment("RAY_IGNORE_UNHANDLED_ERRORS");
  return ignored.empty() || ignored == "0";
}

}  // namespace

Objects::Objects(const Parts& parts, Hooks hooks)
    : parts_(parts),
      hooks_(std::move(hooks)),
      reports_unseen_(reports_unseen_errors()),
      contents_(parts.shared.loop, refs_),
      copies_(parts.shared.loop, parts.shared.context, parts.peers, store_) {}

void Objects::reset(const WorkerId& self) { refs_ = std::make_unique<RefTable>(*this, self); }

// The counter is the process's, not the session's: jobs of successive clusters may have the same
// number, and an object left over from an earlier one must not be taken for a new one.
ObjectId Objects::next_put_id() {
  static std::atomic<uint32_t> last_index{kPutIndexBase};
  return make_object_id(parts_.shared.self.put_task(),
                        last_index.fetch_add(1, std::memory_order_relaxed) + 1);
}

const proto::WorkerAddress& Objects::owner_of(const ObjectEntry& entry) const {
  return entry.owned ? parts_.shared.self.address() : *entry.details().owner;
}

std::string Objects::pack(std::span<const Ref> contained) const {
  return pack_refs(contained, [this](const Ref& ref) -> const proto::WorkerAddress& {
    assert_locked();
    return owner_of(entry_of(ref));
  });
}

std::vector<Ref> Objects::take_refs(Bytes packed, bool registered, bool register_now) {
  std::vector<Ref> out;
  auto unpacked = unpack_refs(packed);
  if (!unpacked) return out;
  out.reserve(unpacked->size());
  std::vector<ObjectEntry*> borrowed;
  for (auto& item : *unpacked) {
    ObjectEntry* entry = refs_->borrow(item.id, item.owner, registered);
    if (!entry) {
      // This process owns the object and has freed it, so the sender's hold was lost. The
      // reference reads as an error.
      entry = refs_->create(item.id);
      set_error(*entry,
                system_error(Code::kObjectLost,
                             fmt::format("object {} was freed by its owner", item.id.hex())));
    }
    out.emplace_back(entry);
    if (register_now) borrowed.push_back(entry);
  }
  if (register_now) refs_->register_now(borrowed);
  return out;
}

void Objects::mark_ready(ObjectEntry& entry) {
  entry.ready.store(true, std::memory_order_release);
  if (entry.details().waiters.empty()) return;
  std::vector<std::function<void()>> waiters;
  waiters.swap(entry.mutable_details().waiters);
  for (auto& waiter : waiters) waiter();
}

void Objects::set_blob(ObjectEntry& entry, Blob blob) {
  entry.size = static_cast<int64_t>(blob.size);
  entry.blob = std::move(blob);
  entry.state.store(ObjectState::kInMemory, std::memory_order_release);
  mark_ready(entry);
}

void Objects::set_error(ObjectEntry& entry, const proto::ErrorValue& error) {
  count_error();
  const bool loss = error.code() == static_cast<int>(Code::kObjectLost) ||
                    error.code() == static_cast<int>(Code::kOwnerDied);
  if (!loss || !error.object_id().empty())
    return set_blob(entry, copy_blob(as_bytes(encode_error(error))));
  proto::ErrorValue named = error;
  named.set_object_id(entry.id.binary());
  set_blob(entry, copy_blob(as_bytes(encode_error(named))));
}

void Objects::owner_died(ObjectEntry& entry, const Error& why) {
  // Until the owner's node has told how the owner ended.
  entry.mutable_details().fetching = Fetch::kCopy;
  Ref hold(&entry);
  const proto::WorkerAddress& owner = *entry.details().owner;
  hooks_.ask_exit(owner, [this, hold, why](proto::ExitInfo exit) {
    assert_locked();
    auto& entry = entry_of(hold);
    entry.mutable_details().fetching = Fetch::kNone;
    if (exit.kind() == proto::ExitInfo::UNKNOWN && exit.message().empty())
      exit.set_message(why.message);
    proto::ErrorValue error =
        system_error(Code::kOwnerDied, fmt::format("The owner of object {} on {} died: {}",
                                                   entry.id.hex(), exit.ip(), describe_exit(exit)));
    *error.mutable_exit() = std::move(exit);
    set_error(entry, error);
  });
}

Ref Objects::store_small(const ValueParts& parts, const std::string& packed) {
  size_t size = encoded_size(parts, packed.size());
  auto data = std::make_shared_for_overwrite<uint8_t[]>(size);
  encode_value(parts, packed, data.get(), plain_copy);
  ObjectEntry* entry = refs_->create(next_put_id());
  if (!parts.contained.empty())
    entry->mutable_details().contained.assign(parts.contained.begin(), parts.contained.end());
  Ref ref(entry);
  set_blob(*entry, {std::move(data), size});
  return ref;
}

Result<Objects::Sealed> Objects::write_to_store(WorkerLock& lock, const ObjectId& id,
                                                const WorkerId& owner, const ValueParts& parts,
                                                const std::string& packed, size_t size) {
  if (!store_ || !store_->is_open())
    return make_error(Code::kUnavailable, "the connection to this node's object store is lost");
  // The callback may come after this function has given up waiting, so what it touches is shared.
  auto answer = std::make_shared<std::optional<Result<store::Allocation>>>();
  store_->create(id, static_cast<int64_t>(size), owner,
                 [answer](Result<store::Allocation> a) { *answer = std::move(a); });
  // Room may come from tasks that need this one's CPU. A store that is only late is not short of
  // it.
  const uint64_t shortages = store_->shortages();
  auto answered = [&] { return answer->has_value() || parts_.shared.stopping; };
  auto is_short = [&] {
    assert_locked();
    return store_ && store_->shortages() != shortages;
  };
  while (!answer->has_value()) {
    if (is_short()) {
      parts_.pump.wait_until(lock, -1, answered, kLendsCpu);
    } else {
      parts_.pump.wait_until(lock, -1, [&] { return answered() || is_short(); });
    }
    if (parts_.shared.stopping)
      return make_error(Code::kUnavailable, "the worker is shutting down");
  }
  if (!**answer) return (*answer)->error();
  store::Allocation allocation = ***answer;
  lock.unlock();
  encode_value(parts, packed, allocation.memory.data(), store::copy_large,
               static_cast<size_t>(parts_.shared.settings().parallel_copy_bytes));
  lock.lock();
  return Sealed{store_->seal(id, allocation, owner), static_cast<int64_t>(size)};
}

Result<Ref> Objects::store_large(WorkerLock& lock, const ValueParts& parts,
                                 const std::string& packed, size_t size) {
  const ObjectId id = next_put_id();
  auto sealed = write_to_store(lock, id, parts_.shared.context.worker_id, parts, packed, size);
  if (!sealed) return sealed.error();
  ObjectEntry* entry = refs_->create(id);
  Ref ref(entry);
  entry->state = ObjectState::kInStore;
  entry->size = sealed->size;
  ObjectDetails& details = entry->mutable_details();
  details.contained.assign(parts.contained.begin(), parts.contained.end());
  details.mapped = std::move(sealed->view);
  details.locations.push_back({parts_.shared.context.node_id, parts_.shared.context.node_ip,
                               parts_.shared.context.node_manager_port});
  mark_ready(*entry);
  return ref;
}

Result<Ref> Objects::put_once(const ValueParts& parts) {
  // Hashing large buffers takes long, so it is done without the lock.
  ContentHash hash = content_hash(parts.inband, parts.buffers);
  return put(parts, &hash);
}

Result<Ref> Objects::put(const ValueParts& parts, const ContentHash* content) {
  std::string packed;
  WorkerLock lock(parts_.shared.mutex);
  if (parts_.shared.stopping) return session_over();
  refs_->drain_releases();
  if (!parts.contained.empty()) content = nullptr;
  if (content) {
    if (Ref known = contents_.find(*content)) return known;
  }
  if (!parts.contained.empty()) packed = pack(parts.contained);
  size_t size = encoded_size(parts, packed.size());
  if (static_cast<int64_t>(size) <= parts_.shared.settings().max_inline_bytes)
    return store_small(parts, packed);
  contents_.let_go();
  refs_->drain_releases();
  auto ref = store_large(lock, parts, packed, size);
  parts_.shared.loop.flush_all();
  if (ref && content) contents_.add(*content, *ref);
  return ref;
}

void Objects::free_object(ObjectEntry& entry) {
  if (!entry.in_store()) {
    if (entry.unseen_error.exchange(false, std::memory_order_relaxed)) report_unseen(entry);
    return;
  }
  contents_.forget(entry.id);
  if (!store_ || parts_.shared.stopping) return;
  std::vector<store::Location> elsewhere;
  for (const auto& at : entry.details().locations)
    if (at.node != parts_.shared.context.node_id) elsewhere.push_back(to_store(at, entry.size));
  entry.mutable_details().mapped = {};
  store_->drain_releases();
  store_->free({entry.id}, elsewhere);
}

// Reports the failure of a task whose result lost its last reference before anybody read it,
// waited for it or passed it on.
void Objects::report_unseen(const ObjectEntry& entry) {
  auto value = decode_value(entry.blob.bytes());
  auto error = value ? decode_error(value->inband) : Result<proto::ErrorValue>(value.error());
  if (!error || parts_.shared.stopping) return;
  // An actor is often ended on purpose, and its calls with it.
  if (error->code() == static_cast<int>(Code::kActorDied) ||
      error->code() == static_cast<int>(Code::kActorUnavailable))
    return;
  parts_.notices.unhandled(error_text(*error));
}

bool Objects::is_local(const ObjectEntry& entry) const {
  if (!entry.ready.load(std::memory_order_acquire)) return false;
  return entry.state == ObjectState::kInMemory || entry.details().mapped.keepalive ||
         !entry.details().view.expired();
}

// Asks for a borrowed object once; the owner answers when the value exists.
void Objects::resolve(ObjectEntry& entry) {
  if (entry.owned || entry.ready || entry.details().asked) return;
  entry.mutable_details().asked = true;
  Ref hold(&entry);
  parts_.peers.with(*entry.details().owner, [this, hold](Result<std::shared_ptr<Link>> link) {
    assert_locked();
    auto& entry = entry_of(hold);
    if (!link) return owner_died(entry, link.error());
    proto::ObjectStatusRequest request;
    request.set_object_id(entry.id.binary());
    request.set_want_value(true);
    rpc::call(*(*link)->connection, &proto::WorkerService::Stub::GetObject, request, -1,
              [this, hold](Result<proto::ObjectStatus> status) {
                assert_locked();
                auto& entry = entry_of(hold);
                if (entry.ready) return;
                if (!status) return owner_died(entry, status.error());
                switch (status->state()) {
                  case proto::ObjectStatus::READY_INLINE:
                    if (is_error(as_bytes(status->value()))) count_error();
                    set_blob(entry, copy_blob(as_bytes(status->value())));
                    break;
                  case proto::ObjectStatus::READY_IN_STORE: {
                    entry.state = ObjectState::kInStore;
                    entry.size = status->size();
                    int n = std::min({status->locations_size(), status->location_ips_size(),
                                      status->location_ports_size()});
                    for (int i = 0; i < n; ++i)
                      entry.mutable_details().locations.push_back(
                          {NodeId::from_binary(status->locations(i)), status->location_ips(i),
                           status->location_ports(i)});
                    mark_ready(entry);
                    break;
                  }
                  default:
                    set_error(
                        entry,
                        system_error(
                            Code::kObjectLost,
                            fmt::format("Object {} was freed: its owner does not know it any more.",
                                        entry.id.hex())));
                }
              });
  });
}

// The store has lost a borrowed object. Stores drop the objects of a dead owner, so the error
// depends on whether the owner lives.
void Objects::lost(ObjectEntry& entry, std::string why) {
  // Until the owner has answered.
  entry.mutable_details().fetching = Fetch::kCopy;
  Ref hold(&entry);
  auto answered = [this, hold, why = std::move(why)](const Status& heard) {
    assert_locked();
    auto& entry = entry_of(hold);
    if (!heard) return owner_died(entry, heard.error());
    entry.mutable_details().fetching = Fetch::kNone;
    set_error(entry, system_error(Code::kObjectLost, why));
  };
  parts_.peers.with(*entry.details().owner, [hold, answered](Result<std::shared_ptr<Link>> link) {
    if (!link) return answered(link.error());
    proto::ObjectStatusRequest request;
    request.set_object_id(hold.id().binary());
    rpc::call(*(*link)->connection, &proto::WorkerService::Stub::GetObject, request, -1,
              [answered](Result<proto::ObjectStatus> status) {
                answered(status ? Status() : status.error());
              });
  });
}

void Objects::fetch(ObjectEntry& entry, int64_t since_us, Fetch purpose) {
  if (!entry.in_store() || is_local(entry) || entry.fetch_failed_since(since_us)) return;
  if (Fetch& under_way = entry.mutable_details().fetching; under_way != Fetch::kNone) {
    under_way = std::max(under_way, purpose);
    return;
  }
  if (purpose == Fetch::kCopy && entry.is_on(parts_.shared.context.node_id)) return;
  if (!store_) {
    set_error(entry,
              system_error(
                  Code::kObjectLost,
                  fmt::format("Object {} is in shared memory, but this node runs no object store.",
                              entry.id.hex())));
    return;
  }
  entry.mutable_details().fetching = purpose;
  const bool remote = !entry.is_on(parts_.shared.context.node_id);
  Ref hold(&entry);
  std::vector<store::StoreClient::Wanted> wanted{{entry.id, to_store(entry)}};
  store_->get(
      std::move(wanted), parts_.shared.settings().object_fetch_timeout_ms * 1000,
      [this, hold, remote](std::vector<Result<OwnedBytes>> got) {
        assert_locked();
        auto& entry = entry_of(hold);
        ObjectDetails& details = entry.mutable_details();
        const bool for_view = std::exchange(details.fetching, Fetch::kNone) == Fetch::kView;
        if (got.empty() || !got[0]) {
          std::string why = got.empty() ? "no answer" : got[0].error().message;
          Code code = got.empty() || got[0].error().code == Code::kUnavailable
                          ? Code::kObjectLost
                          : got[0].error().code;
          why = fmt::format("Object {} ({} bytes) cannot be read: {}", entry.id.hex(), entry.size,
                            why);
          if (code != Code::kObjectLost) {
            // The object is where it was: whoever waits now has failed, and may try again.
            details.failed_fetch = std::make_unique<FailedFetch>(steady_now_us(), Error{code, why});
            count_error();
            return;
          }
          if (!entry.owned) return lost(entry, std::move(why));
          set_error(entry, system_error(code, why));
          return;
        }
        if (for_view) {
          details.mapped = *got[0];
          details.view = details.mapped.keepalive;
          details.view_bytes = details.mapped.bytes;
        }
        if (remote)
          details.locations.push_back({parts_.shared.context.node_id, parts_.shared.context.node_ip,
                                       parts_.shared.context.node_manager_port});
        if (!store_->take_untold(entry.id)) return;
        if (entry.owned) return store_->owner_knows(entry.id);
        copies_.announce(entry.id, *details.owner, got[0]->keepalive);
      });
}

void Objects::let_go(std::span<const Ref> refs) {
  for (const Ref& ref : refs) {
    auto& entry = entry_of(ref);
    if (!entry.has_details()) continue;
    ObjectDetails& details = entry.mutable_details();
    details.fetching = std::min(details.fetching, Fetch::kCopy);
    // The creator keeps its pin.
    const bool creator = entry.owned && !details.locations.empty() &&
                         details.locations.front().node == parts_.shared.context.node_id &&
                         details.view.expired();
    if (!creator) details.mapped = {};
  }
}

Result<Value> Objects::decode(ObjectEntry& entry, Bytes encoded, Keepalive keepalive, bool shared) {
  auto decoded = decode_value(encoded);
  if (!decoded) return decoded.error();
  const Bytes packed_refs = decoded->packed_refs;
  Value value = to_value(std::move(*decoded), std::move(keepalive));
  value.in_shared_memory = shared;
  if (!packed_refs.empty()) {
    std::vector<Ref>& contained = entry.mutable_details().contained;
    // For a borrowed object the references inside are registered with their owners here, and kept
    // as long as the object.
    if (contained.empty()) contained = take_refs(packed_refs, false, true);
    value.contained = contained;
  }
  return value;
}

Result<Value> Objects::value_of(const Ref& ref, int64_t since_us) {
  auto& entry = entry_of(ref);
  if (entry.ready.load(std::memory_order_acquire) && entry.state == ObjectState::kInMemory) {
    // The value is published and constant, so no lock is needed. A value with references inside
    // needs the table.
    auto decoded = decode_value(entry.blob.bytes());
    if (!decoded) return decoded.error();
    if (decoded->packed_refs.empty()) return to_value(std::move(*decoded), entry.blob.data);
  }
  WorkerLock lock(parts_.shared.mutex);
  for (;;) {
    if (!entry.ready) {
      resolve(entry);
      parts_.pump.wait_until(
          lock, -1, [&] { return entry.ready.load() || parts_.shared.stopping; }, kLendsCpu);
      if (parts_.shared.stopping) return session_over();
      continue;
    }
    if (entry.state == ObjectState::kInMemory)
      return decode(entry, entry.blob.bytes(), entry.blob.data, false);
    // This holds even if another call has fetched it since, so that wait_all(), first_failed() and
    // this function give one account.
    if (entry.fetch_failed_since(since_us)) return entry.details().failed_fetch->why;
    const OwnedBytes& mapped = entry.details().mapped;
    Keepalive view = mapped.keepalive ? mapped.keepalive : entry.details().view.lock();
    if (view) {
      Bytes bytes = mapped.keepalive ? mapped.bytes : entry.details().view_bytes;
      // From here on those who hold the view keep the copy here.
      let_go({&ref, 1});
      return decode(entry, bytes, std::move(view), true);
    }
    parts_.pump.wait_until(
        lock, -1,
        [&] {
          assert_locked();
          if (is_local(entry) || parts_.shared.stopping || entry.fetch_failed_since(since_us))
            return true;
          // Again when another thread that waited for it has let it go.
          fetch(entry, since_us, Fetch::kView);
          return false;
        },
        [&] { return entry.is_awaited_on(parts_.shared.context.node_id); });
    if (parts_.shared.stopping) return session_over();
  }
}

void Objects::fill_status(const ObjectEntry& entry, bool want_value,
                          proto::ObjectStatus* status) const {
  status->set_size(entry.size);
  entry.unseen_error.store(false, std::memory_order_relaxed);
  if (entry.state == ObjectState::kInMemory) {
    status->set_state(proto::ObjectStatus::READY_INLINE);
    if (want_value) status->set_value(std::string(as_view(entry.blob.bytes())));
    return;
  }
  status->set_state(proto::ObjectStatus::READY_IN_STORE);
  for (const auto& location : entry.details().locations) {
    status->add_locations(location.node.binary());
    status->add_location_ips(location.ip);
    status->add_location_ports(location.port);
  }
}

void Objects::serve(const proto::ObjectStatusRequest& request,
                    std::function<void(const proto::ObjectStatus&)> reply) {
  ObjectEntry* entry = ObjectId::is_valid(request.object_id())
                           ? refs_->find(ObjectId::from_binary(request.object_id()))
                           : nullptr;
  proto::ObjectStatus status;
  if (!entry || !entry->owned) {
    status.set_state(proto::ObjectStatus::UNKNOWN);
    reply(status);
    return;
  }
  if (entry->ready) {
    fill_status(*entry, request.want_value(), &status);
    reply(status);
    return;
  }
  // The asker wants the location only; a value that is not made yet has none.
  if (!request.want_value()) {
    status.set_state(proto::ObjectStatus::UNKNOWN);
    status.set_size(-1);
    reply(status);
    return;
  }
  entry->mutable_details().waiters.push_back([this, hold = Ref(entry), reply = std::move(reply)] {
    assert_locked();
    proto::ObjectStatus status;
    fill_status(entry_of(hold), true, &status);
    reply(status);
  });
}

void Objects::add_borrower(const proto::WorkerAddress& owner, const std::vector<ObjectId>& ids,
                           const WorkerId& borrower) {
  proto::BorrowRequest request;
  for (const ObjectId& id : ids) request.add_object_ids(id.binary());
  if (borrower == parts_.shared.context.worker_id) {
    *request.mutable_borrower() = parts_.shared.self.address();
  } else {
    request.mutable_borrower()->set_worker_id(borrower.binary());
  }
  parts_.peers.with(owner, [this, request, ids](Result<std::shared_ptr<Link>> link) {
    assert_locked();
    // The owner is gone, and reading the object will say so.
    if (!link) return refs_->confirm_borrows(ids);
    rpc::call(*(*link)->connection, &proto::WorkerService::Stub::AddBorrower, request, -1,
              [this, ids](Result<proto::BorrowReply>) {
                assert_locked();
                refs_->confirm_borrows(ids);
                hooks_.borrows_confirmed();
              });
  });
}

void Objects::remove_borrower(const proto::WorkerAddress& owner, const ObjectId& id,
                              uint32_t lent) {
  if (parts_.shared.stopping) return;
  proto::ReturnBorrow note;
  note.add_object_ids(id.binary());
  note.add_counts(lent);
  note.set_borrower_worker_id(parts_.shared.context.worker_id.binary());
  if (Link* link = parts_.peers.find(WorkerId::from_binary(owner.worker_id()));
      link && link->open) {
    rpc::notify(*link->connection, &proto::WorkerService::Stub::RemoveBorrower, note);
    // The lender told the owner of this borrow, so there may be no connection to the owner yet.
  } else {
    parts_.peers.with(owner, [note](Result<std::shared_ptr<Link>> link) {
      if (link)
        rpc::notify(*(*link)->connection, &proto::WorkerService::Stub::RemoveBorrower, note);
    });
  }
}

}  // namespace rt::worker
