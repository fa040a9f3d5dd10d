// StoreService: the methods of ObjectStoreService. They check the form of ids and sizes; the core
// checks that they are true.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "common/rpc/client.h"
#include "daemons/object_store/service/store_service.h"

namespace rt::store {

namespace {

// The most processes that one list of GetStats has.
constexpr size_t kMostListed = 100;

// Parses the ids of a repeated bytes field. Fails with kInvalid if one is malformed.
template <class IdType, class Field>
Result<std::vector<IdType>> parse_ids(const Field& field) {
  std::vector<IdType> ids;
  ids.reserve(static_cast<size_t>(field.size()));
  for (const std::string& bytes : field) {
    if (!IdType::is_valid(bytes))
      return make_error(Code::kInvalid, fmt::format("sent an id of {} bytes instead of {}",
                                                    bytes.size(), IdType::kSize));
    ids.push_back(IdType::from_binary(bytes));
  }
  return ids;
}

template <class Field>
std::vector<Source> parse_sources(const Field& locations) {
  std::vector<Source> sources;
  for (const auto& location : locations) {
    sources.push_back({NodeId::from_binary(location.node_id()), location.ip(), location.port(),
                       std::max<int64_t>(0, location.size())});
  }
  return sources;
}

}  // namespace

void StoreService::Attach(Controller* controller, const proto::AttachRequest* request,
                          proto::AttachReply* reply, Closure* done) {
  Client* client = admit(controller, Who::kLocal, done);
  if (!client) return;
  if (!WorkerId::is_valid(request->worker_id()))
    return reject(controller, done, make_error(Code::kInvalid, "Attach without a worker id"));
  Status attached = driver_.drive([&](StoreCore& core, Now) {
    return core.attach(client->id, WorkerId::from_binary(request->worker_id()),
                       JobId::from_binary(request->job_id()), request->pid());
  });
  if (!attached) return reject(controller, done, attached.error());
  client->attached = true;
  reply->set_arena_size(arena_->capacity());
  reply->set_capacity(arena_->capacity());
  done->Run();
}

void StoreService::Create(Controller* controller, const proto::CreateRequest* request,
                          proto::CreateReply* reply, Closure* done) {
  Client* client = admit(controller, Who::kAttached, done);
  if (!client) return;
  std::vector<CreateItem> items;
  for (const auto& object : request->objects()) {
    if (!ObjectId::is_valid(object.object_id()))
      return reject(controller, done,
                    make_error(Code::kInvalid, "Create with a malformed object id"));
    items.push_back({ObjectId::from_binary(object.object_id()), object.size(),
                     WorkerId::from_binary(object.owner_worker_id())});
  }
  CallId call = held_.add({client->id, {&rpc::server_call(controller), reply, done}});
  driver_.drive([&, id = client->id](StoreCore& core, Now now) {
    core.create(id, call, std::move(items), request->wait_for_space(), now);
  });
}

void StoreService::LeaseExtent(Controller* controller, const proto::LeaseExtentRequest* request,
                               proto::LeaseExtentReply* reply, Closure* done) {
  Client* client = admit(controller, Who::kAttached, done);
  if (!client) return;
  CallId call = held_.add({client->id, {&rpc::server_call(controller), reply, done}});
  driver_.drive([&, id = client->id](StoreCore& core, Now now) {
    core.lease_extent(id, call, request->size(), now);
  });
}

void StoreService::Seal(Controller* controller, const proto::SealRequest* request, proto::Empty*,
                        Closure* done) {
  Client* client = admit(controller, Who::kAttached, done);
  if (!client) return;
  std::vector<SealItem> items;
  for (const auto& object : request->objects()) {
    if (!ObjectId::is_valid(object.object_id())) {
      close(*client, make_error(Code::kInvalid, "sealed an object with a malformed id"));
      return done->Run();
    }
    items.push_back({ObjectId::from_binary(object.object_id()), object.offset(), object.size(),
                     object.extent_id(), WorkerId::from_binary(object.owner_worker_id())});
  }
  std::vector<uint64_t> finished(request->finished_extents().begin(),
                                 request->finished_extents().end());
  driver_.drive(
      [&, id = client->id](StoreCore& core, Now now) { core.seal(id, items, finished, now); });
  done->Run();
}

// Implements Abort and Release, which are one-way and concern objects of this client.
void StoreService::give_up(Controller* controller, const proto::ReleaseRequest& request,
                           Closure* done, GiveUp event) {
  Client* client = admit(controller, Who::kAttached, done);
  if (!client) return;
  auto ids = parse_ids<ObjectId>(request.object_ids());
  auto told = parse_ids<ObjectId>(request.told_object_ids());
  if (ids && told) {
    driver_.drive([&, id = client->id](StoreCore& core, Now now) {
      if (!ids->empty() || !told->empty()) event(core, id, *ids, now, *told);
      if (request.ended_arguments_size() == 0 && !request.has_blocked()) return;
      core.update_tasks(id, {request.ended_arguments().begin(), request.ended_arguments().end()},
                        request.has_blocked() ? std::optional(request.blocked()) : std::nullopt,
                        now);
    });
  } else {
    close(*client, ids ? told.error() : ids.error());
  }
  done->Run();
}

void StoreService::Abort(Controller* controller, const proto::ReleaseRequest* request,
                         proto::Empty*, Closure* done) {
  give_up(controller, *request, done,
          [](StoreCore& core, ClientId client, const std::vector<ObjectId>& ids, Now now,
             const std::vector<ObjectId>&) { core.abort(client, ids, now); });
}

void StoreService::Get(Controller* controller, const proto::GetRequest* request,
                       proto::GetReply* reply, Closure* done) {
  Client* client = admit(controller, Who::kAttached, done);
  if (!client) return;
  std::vector<WantedItem> items;
  for (const auto& object : request->objects()) {
    if (!ObjectId::is_valid(object.object_id()))
      return reject(controller, done, make_error(Code::kInvalid, "Get with a malformed object id"));
    items.push_back({ObjectId::from_binary(object.object_id()), parse_sources(object.locations())});
  }
  int64_t timeout_us = request->timeout_ms() < 0
                           ? -1
                           : std::min<int64_t>(request->timeout_ms(), INT64_MAX / 1000) * 1000;
  CallId call = held_.add({client->id, {&rpc::server_call(controller), reply, done}});
  driver_.drive([&, id = client->id](StoreCore& core, Now now) {
    core.get(id, call, std::move(items), timeout_us, now, request->arguments());
  });
}

void StoreService::Release(Controller* controller, const proto::ReleaseRequest* request,
                           proto::Empty*, Closure* done) {
  give_up(controller, *request, done,
          [](StoreCore& core, ClientId client, const std::vector<ObjectId>& ids, Now now,
             const std::vector<ObjectId>& told) { core.release(client, ids, now, told); });
}

void StoreService::Free(Controller* controller, const proto::FreeRequest* request, proto::Empty*,
                        Closure* done) {
  Client* client = admit(controller, Who::kLocalOrStore, done);
  if (!client) return;
  auto ids = parse_ids<ObjectId>(request->object_ids());
  if (!ids) {
    close(*client, ids.error());
    return done->Run();
  }
  driver_.drive([&](StoreCore& core, Now now) { core.free(*ids, now); });
  // Only owners send locations, and an owner is on this node, so a forwarded message is never
  // forwarded again.
  if (client->is_local) {
    proto::FreeRequest forwarded;
    *forwarded.mutable_object_ids() = request->object_ids();
    for (const Source& peer : parse_sources(request->locations())) {
      if (peer.node == options_.node) continue;
      peers_.get(peer, [forwarded](Result<std::shared_ptr<rpc::Connection>> connection) {
        // A peer that cannot be reached frees its copy when the owner or its job ends.
        if (connection)
          rpc::notify(**connection, &proto::ObjectStoreService::Stub::Free, forwarded);
      });
    }
  }
  done->Run();
}

void StoreService::Contains(Controller* controller, const proto::ContainsRequest* request,
                            proto::ContainsReply* reply, Closure* done) {
  if (!admit(controller, Who::kLocal, done)) return;
  auto ids = parse_ids<ObjectId>(request->object_ids());
  if (!ids) return reject(controller, done, ids.error());
  for (const ObjectId& id : *ids) reply->add_present(driver_.core().contains(id));
  done->Run();
}

void StoreService::Pull(Controller* controller, const proto::PullRequest* request,
                        proto::PullReply* reply, Closure* done) {
  Client* client = admit(controller, Who::kLocalOrStore, done);
  if (!client) return;
  Range range{request->offset(), request->length()};
  if (!ObjectId::is_valid(request->object_id()) || range.offset < 0 || range.size < 0 ||
      range.size > rpc::kMaxFrameBytes / 2) {
    return reject(controller, done,
                  make_error(Code::kInvalid, "Pull with a malformed id or range"));
  }
  ObjectId id = ObjectId::from_binary(request->object_id());
  CallId call = held_.add({client->id, {&rpc::server_call(controller), reply, done}, id, range});
  if (fetcher_.is_receiving(id) && !driver_.core().contains(id))
    return fetcher_.read(call, id, range);
  // The object is said to be here, but its seal may still be on its way.
  Source here;
  here.node = options_.node;
  driver_.drive([&](StoreCore& core, Now now) {
    core.get(kTransfer, call, {{id, {here}}}, settings_.seal_grace_ms * 1000, now, 0);
  });
}

void StoreService::finish_pull(const std::optional<Held::Call>& pull,
                               Result<Fetcher::Piece> piece) {
  if (!pull) return;
  const auto& [call, message, done] = pull->reply;
  if (piece) {
    auto* reply = std::get<proto::PullReply*>(message);
    reply->set_total_size(piece->total_size);
    reply->set_owner_worker_id(piece->owner.binary());
    if (pull->lies_within(piece->total_size)) {
      call->set_reply_attachment(std::move(piece->bytes));
    } else {
      call->fail(
          make_error(Code::kInvalid, fmt::format("the object has {} bytes", piece->total_size)));
    }
  } else {
    call->fail(std::move(piece).error());
  }
  done->Run();
}

// Returns a part of a sealed object. The object's pin is released when the socket has taken the
// bytes.
Fetcher::Piece StoreService::pinned_piece(const Held::Call& pull, const GetAnswer& answer) {
  Bytes bytes;
  if (pull.lies_within(answer.size))
    bytes = arena_->readable(answer.offset + pull.range.offset, pull.range.size);
  auto dropped = [this, id = pull.pulled, alive = std::weak_ptr<bool>(alive_)](const void*) {
    if (alive.expired()) return;
    sent_.push_back(id);
    if (sent_.size() > 1) return;
    loop_.post([this, alive] {
      if (!alive.expired()) release_sent();
    });
  };
  return {{bytes, Keepalive(bytes.data(), std::move(dropped))}, answer.size, answer.owner};
}

void StoreService::release_sent() {
  std::vector<ObjectId> sent = std::exchange(sent_, {});
  driver_.drive([&](StoreCore& core, Now now) { core.release(kTransfer, sent, now, {}); });
}

void StoreService::FreeOwnedBy(Controller* controller, const proto::OwnersGone* request,
                               proto::Empty*, Closure* done) {
  Client* client = admit(controller, Who::kLocal, done);
  if (!client) return;
  auto workers = parse_ids<WorkerId>(request->worker_ids());
  auto jobs = parse_ids<JobId>(request->job_ids());
  auto nodes = parse_ids<NodeId>(request->node_ids());
  if (workers && jobs && nodes) {
    fetcher_.nodes_gone(*nodes);
    const Ended ended{std::move(*workers), std::move(*jobs), std::move(*nodes)};
    driver_.drive([&](StoreCore& core, Now now) { core.free_owned_by(ended, now); });
  } else {
    close(*client, !workers ? workers.error() : !jobs ? jobs.error() : nodes.error());
  }
  done->Run();
}

void StoreService::GetStats(Controller* controller, const proto::Empty*, proto::StoreStats* reply,
                            Closure* done) {
  if (!admit(controller, Who::kAnyone, done)) return;
  // Node-managers ask often and need only capacity, use and what waits; the rest takes a pass over
  // all objects.
  bool waiters_only = rpc::server_call(controller).connection()->peer().role == "node_manager";
  Stats stats = driver_.core().stats(waiters_only);
  reply->set_pid(::getpid());
  reply->set_capacity(stats.capacity);
  reply->set_used(stats.used);
  reply->set_no_pages(stats.no_pages);
  reply->set_num_objects(stats.objects);
  reply->set_pinned(stats.pinned);
  reply->set_allocated(stats.allocated);
  const Now now = system_now();
  for (size_t i = 0; i < stats.waiters.size() && i < kMostListed; i++) {
    const Waiter& waiting = stats.waiters[i];
    auto* waiter = reply->add_waiters();
    waiter->set_kind(static_cast<proto::StoreWaiter::Kind>(waiting.kind));
    waiter->set_worker_id(waiting.worker.binary());
    waiter->set_job_id(waiting.job.binary());
    waiter->set_pid(waiting.pid);
    waiter->set_count(waiting.count);
    waiter->set_bytes(waiting.bytes);
    waiter->set_since_ms((now.wall_us - (now.steady_us - waiting.since_us)) / 1000);
  }
  for (size_t i = 0; i < stats.holders.size() && i < kMostListed; i++) {
    auto* holder = reply->add_holders();
    holder->set_worker_id(stats.holders[i].worker.binary());
    holder->set_bytes(stats.holders[i].bytes);
    holder->set_objects(stats.holders[i].objects);
    holder->set_pid(stats.holders[i].pid);
  }
  done->Run();
}

void StoreService::Stop(Controller* controller, const proto::Empty*, proto::Empty*, Closure* done) {
  if (!admit(controller, Who::kLocal, done)) return;
  done->Run();
  if (options_.on_stop) loop_.post(options_.on_stop);
}

}  // namespace rt::store
