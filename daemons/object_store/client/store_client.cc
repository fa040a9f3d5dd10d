#include "daemons/object_store/client/store_client.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>
#include <unordered_map>
#include <utility>

#include "common/proto/object_store.pb.h"
#include "common/rpc/client.h"
#include "common/rpc/preamble.h"
#include "daemons/object_store/client/extent_pool.h"
#include "daemons/object_store/client/mapping.h"
#include "daemons/object_store/client/release_queue.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

using Stub = proto::ObjectStoreService::Stub;

struct StoreClient::Impl {
  // An object that the daemon has pinned for this client. `freed` says that this process freed the
  // object, so get() must not answer with it.
  struct Held {
    std::weak_ptr<const void> view;
    Bytes bytes;
    bool freed = false;
    // The hold of the task for which the object was fetched. Later tasks that use the view share
    // it.
    std::weak_ptr<const void> task;
    // Whether the owner does not know of the copy, as the daemon has said, and nobody has begun to
    // tell it.
    bool untold = false;
  };
  struct Waiting {
    ObjectId id;
    int64_t size;
    WorkerId owner;
    Created done;
  };

  Impl(const Settings& settings, std::shared_ptr<rpc::Connection> connection,
       std::shared_ptr<Mapping> mapping, int64_t capacity, net::PollLoop& on)
      : small_limit(std::min<int64_t>(1 << 20, settings.extent_bytes / 8)),
        extent_bytes(settings.extent_bytes),
        connection(std::move(connection)),
        mapping(std::move(mapping)),
        capacity(capacity),
        loop(&on) {}

  OwnedBytes make_view(const ObjectId& id, Bytes bytes) {
    Keepalive keepalive = ReleaseQueue::make_keepalive(new View{id, 0, mapping, queue});
    held[id] = {keepalive, bytes, false, {}};
    return {bytes, std::move(keepalive)};
  }
  void create_at_daemon(const ObjectId& id, int64_t size, const WorkerId& owner, Created done);
  void on_notice(uint32_t type, Bytes body);
  void request_extent();
  void on_extent(Result<proto::LeaseExtentReply> reply);
  void on_got(const std::vector<Wanted>& wanted, const std::vector<size_t>& asked,
              std::vector<Result<OwnedBytes>>& results, Result<proto::GetReply> reply);
  void drain();
  void get(std::vector<Wanted> wanted, int64_t timeout_us, Got done, Keepalive* task);
  void tell_blocked();
  Error closed_error() const {
    return make_error(Code::kUnavailable,
                      "the connection to this node's object store is closed: " + closed_why);
  }

  const int64_t small_limit;
  const int64_t extent_bytes;
  std::shared_ptr<rpc::Connection> connection;
  std::shared_ptr<Mapping> mapping;
  int64_t capacity;
  std::unordered_map<ObjectId, Held> held;
  // News for the daemon that it has not heard yet.
  struct {
    // Pins that the daemon counts twice and this client holds once.
    std::vector<ObjectId> extra_pins;
    std::vector<ObjectId> told;  // Objects whose owners know that they are here.
  } news;
  Ticket last_ticket = 0;
  struct {
    std::set<Ticket> arguments;  // Arguments that wait in line, as the daemon has said.
    // The sizes of objects for which the daemon has been asked and has not given room yet.
    std::unordered_map<ObjectId, int64_t> values;
    uint64_t shortages = 0;
  } wait_for_room;
  bool blocked = false, told_blocked = false;
  ExtentPool extents;
  bool extent_requested = false;
  // Until this time no extent is requested. It is set when a lease was refused, so that not every
  // object leads to a request.
  int64_t no_extent_before_us = 0;
  // Small objects that wait for the requested extent.
  std::deque<Waiting> waiting;
  net::PollLoop* const loop;
  std::shared_ptr<ReleaseQueue> queue = std::make_shared<ReleaseQueue>(loop->waker());
  std::function<void(const Error&)> closed_handler;
  std::string closed_why = "it ended";
  // Callbacks that run after the destructor see it expired.
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
};

void StoreClient::Impl::create_at_daemon(const ObjectId& id, int64_t size, const WorkerId& owner,
                                         Created done) {
  proto::CreateRequest request;
  auto* object = request.add_objects();
  object->set_object_id(id.binary());
  object->set_size(size);
  object->set_owner_worker_id(owner.binary());
  request.set_wait_for_space(true);
  wait_for_room.values[id] = size;
  rpc::call(*connection, &Stub::Create, request, -1,
            [this, id, size, done = std::move(done),
             alive = std::weak_ptr<bool>(alive)](Result<proto::CreateReply> reply) {
              if (!alive.expired()) wait_for_room.values.erase(id);
              if (!reply) return done(std::move(reply).error());
              if (alive.expired())
                return done(make_error(Code::kUnavailable, "the object store's client is gone"));
              if (reply->offsets_size() != 1 || !mapping->contains(reply->offsets(0), size))
                return done(make_error(Code::kProtocol,
                                       "the object store gave room outside of its memory"));
              done(Allocation{mapping->writable(reply->offsets(0), size), reply->offsets(0), 0});
            });
}

void StoreClient::Impl::request_extent() {
  if (extent_requested || !connection->is_open()) return;
  extent_requested = true;
  proto::LeaseExtentRequest request;
  request.set_size(extent_bytes);
  rpc::call(*connection, &Stub::LeaseExtent, request, -1,
            [this, alive = std::weak_ptr<bool>(alive)](Result<proto::LeaseExtentReply> reply) {
              if (!alive.expired()) on_extent(std::move(reply));
            });
}

void StoreClient::Impl::on_extent(Result<proto::LeaseExtentReply> reply) {
  constexpr int64_t kRetryAfterUs = 100'000;
  extent_requested = false;
  if (reply && mapping->contains(reply->offset(), reply->size())) {
    extents.add(reply->extent_id(), reply->offset(), reply->size());
  } else {
    no_extent_before_us = loop->now_us() + kRetryAfterUs;
  }
  auto line = std::exchange(waiting, {});
  std::weak_ptr<bool> still = alive;
  for (Waiting& next : line) {
    if (still.expired())
      return next.done(make_error(Code::kUnavailable, "the object store's client is gone"));
    if (auto cut = extents.cut(next.size)) {
      next.done(Allocation{mapping->writable(cut->offset, next.size), cut->offset, cut->extent});
    } else {
      // The next create() requests the next extent.
      create_at_daemon(next.id, next.size, next.owner, std::move(next.done));
    }
  }
}

void StoreClient::Impl::drain() {
  if (queue->is_empty() && news.extra_pins.empty() && news.told.empty()) return;
  proto::ReleaseRequest request;
  for (View* view = queue->take(); view;) {
    if (view->ticket != 0) {
      request.add_ended_arguments(view->ticket);
    } else {
      request.add_object_ids(view->id.binary());
      auto it = held.find(view->id);
      if (it != held.end() && it->second.view.expired()) held.erase(it);
    }
    delete std::exchange(view, view->next);
  }
  for (const ObjectId& id : std::exchange(news.extra_pins, {})) request.add_object_ids(id.binary());
  for (const ObjectId& id : std::exchange(news.told, {})) request.add_told_object_ids(id.binary());
  if (request.ByteSizeLong() > 0 && connection->is_open())
    rpc::notify(*connection, &Stub::Release, request);
}

void StoreClient::Impl::on_got(const std::vector<Wanted>& wanted, const std::vector<size_t>& asked,
                               std::vector<Result<OwnedBytes>>& results,
                               Result<proto::GetReply> reply) {
  bool well_formed = reply && reply->objects_size() == static_cast<int>(asked.size());
  for (size_t i = 0; i < asked.size(); i++) {
    const ObjectId& id = wanted[asked[i]].id;
    Result<OwnedBytes>& result = results[asked[i]];
    if (!well_formed) {
      result = reply ? make_error(Code::kProtocol,
                                  "the object store answered for other objects than asked")
                     : reply.error();
      continue;
    }
    const auto& object = reply->objects(static_cast<int>(i));
    if (!object.found()) {
      result = make_error(static_cast<Code>(object.error_code()), object.error());
      continue;
    }
    if (!mapping->contains(object.offset(), object.size())) {
      result = make_error(Code::kProtocol, "the object store named a place outside of its memory");
      continue;
    }
    auto it = held.find(id);
    Keepalive existing = it == held.end() ? nullptr : it->second.view.lock();
    if (existing) {
      news.extra_pins.push_back(id);
      result = OwnedBytes{it->second.bytes, std::move(existing)};
    } else {
      result = make_view(id, mapping->readable(object.offset(), object.size()));
    }
    held.at(id).untold = object.untold();
  }
}

StoreClient::StoreClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

StoreClient::~StoreClient() {
  impl_->alive.reset();
  impl_->queue->close();
  impl_->connection->set_closed_handler(nullptr);
  impl_->connection->close(make_error(Code::kUnavailable, "the object store's client is gone"));
  for (auto& waiting : std::exchange(impl_->waiting, {}))
    waiting.done(make_error(Code::kUnavailable, "the object store's client is gone"));
}

void StoreClient::create(const ObjectId& id, int64_t size, const WorkerId& owner, Created done) {
  Impl& self = *impl_;
  if (!self.connection->is_open()) return done(self.closed_error());
  self.drain();
  // With two objects of one id, the daemon could not tell which pin is released.
  if (self.held.count(id))
    return done(make_error(
        Code::kAlreadyExists,
        fmt::format("object {} is in the object store already, held by this process", id.hex())));
  if (size < 0 || size > self.small_limit)
    return self.create_at_daemon(id, size, owner, std::move(done));
  auto cut = self.extents.cut(size);
  bool may_ask = self.loop->now_us() >= self.no_extent_before_us;
  if (self.extents.is_nearly_used_up() && may_ask) self.request_extent();
  if (cut)
    return done(Allocation{self.mapping->writable(cut->offset, size), cut->offset, cut->extent});
  if (!self.extent_requested) return self.create_at_daemon(id, size, owner, std::move(done));
  self.waiting.push_back({id, size, owner, std::move(done)});
}

OwnedBytes StoreClient::seal(const ObjectId& id, const Allocation& allocation,
                             const WorkerId& owner) {
  Impl& self = *impl_;
  auto size = static_cast<int64_t>(allocation.memory.size());
  if (allocation.extent_id != 0) self.extents.on_sealed(allocation.extent_id);
  if (self.connection->is_open()) {
    proto::SealRequest request;
    auto* object = request.add_objects();
    object->set_object_id(id.binary());
    object->set_offset(allocation.offset);
    object->set_size(size);
    object->set_extent_id(allocation.extent_id);
    object->set_owner_worker_id(owner.binary());
    for (uint64_t extent : self.extents.take_finished()) request.add_finished_extents(extent);
    rpc::notify(*self.connection, &Stub::Seal, request);
  }
  return self.make_view(id, self.mapping->readable(allocation.offset, size));
}

void StoreClient::abort(const ObjectId& id, const Allocation& allocation) {
  Impl& self = *impl_;
  if (allocation.extent_id != 0)
    return self.extents.on_aborted(allocation.extent_id, allocation.offset,
                                   static_cast<int64_t>(allocation.memory.size()));
  if (!self.connection->is_open()) return;
  proto::ReleaseRequest request;
  request.add_object_ids(id.binary());
  rpc::notify(*self.connection, &Stub::Abort, request);
}

void StoreClient::get(std::vector<Wanted> wanted, int64_t timeout_us, Got done) {
  impl_->get(std::move(wanted), timeout_us, std::move(done), nullptr);
}

StoreClient::Arguments StoreClient::get_arguments(std::vector<Wanted> wanted, int64_t timeout_us,
                                                  Got done) {
  Arguments arguments;
  const Ticket before = impl_->last_ticket;
  impl_->get(std::move(wanted), timeout_us, std::move(done), &arguments.holds);
  if (impl_->last_ticket > before) arguments.ticket = impl_->last_ticket;
  return arguments;
}

bool StoreClient::waits_for_room(uint64_t ticket) const {
  return impl_->wait_for_room.arguments.contains(ticket);
}

const std::unordered_map<ObjectId, int64_t>& StoreClient::asked_room() const {
  return impl_->wait_for_room.values;
}

uint64_t StoreClient::shortages() const { return impl_->wait_for_room.shortages; }

// Takes a notice of the daemon. A ticket whose request was answered does not wait any more; see
// get().
void StoreClient::Impl::on_notice(uint32_t type, Bytes body) {
  if (type == Notice::kShortOfRoom) ++wait_for_room.shortages;
  Ticket ticket = 0;
  if (body.size() != sizeof(ticket)) return;
  std::memcpy(&ticket, body.data(), sizeof(ticket));
  if (type == Notice::kWaitsForRoom) wait_for_room.arguments.insert(ticket);
  if (type == Notice::kHasRoom) wait_for_room.arguments.erase(ticket);
}

void StoreClient::set_blocked(bool blocked) {
  impl_->blocked = blocked;
  impl_->tell_blocked();
}

// Tells the daemon whether this client is blocked. The store needs to know this only of clients
// that were given arguments.
void StoreClient::Impl::tell_blocked() {
  if (last_ticket == 0 || blocked == told_blocked || !connection->is_open()) return;
  told_blocked = blocked;
  proto::ReleaseRequest request;
  request.set_blocked(blocked);
  rpc::notify(*connection, &Stub::Release, request);
}

// With `task` the objects are arguments, and what their task holds is stored there.
void StoreClient::Impl::get(std::vector<Wanted> wanted, int64_t timeout_us, Got done,
                            Keepalive* task) {
  drain();
  std::vector<Result<OwnedBytes>> results;
  std::vector<size_t> asked;
  std::vector<Keepalive> tasks;
  proto::GetRequest request;
  for (size_t i = 0; i < wanted.size(); i++) {
    auto it = held.find(wanted[i].id);
    Keepalive view = it == held.end() || it->second.freed ? nullptr : it->second.view.lock();
    if (view) {
      results.emplace_back(OwnedBytes{it->second.bytes, std::move(view)});
      if (Keepalive other = task ? it->second.task.lock() : nullptr)
        tasks.push_back(std::move(other));
      continue;
    }
    results.emplace_back(make_error(Code::kInternal, "not answered"));
    asked.push_back(i);
    auto* object = request.add_objects();
    object->set_object_id(wanted[i].id.binary());
    for (const Location& location : wanted[i].locations) {
      auto* to = object->add_locations();
      to->set_node_id(location.node.binary());
      to->set_ip(location.ip);
      to->set_port(location.port);
      to->set_size(location.size);
    }
  }
  std::weak_ptr<const void> held_by;
  if (task && !asked.empty()) {
    request.set_arguments(++last_ticket);
    tasks.push_back(ReleaseQueue::make_keepalive(new View{{}, last_ticket, mapping, queue}));
    held_by = tasks.back();
  }
  if (tasks.size() == 1) *task = std::move(tasks.front());
  if (tasks.size() > 1) *task = std::make_shared<std::vector<Keepalive>>(std::move(tasks));
  if (asked.empty()) return done(std::move(results));
  if (!connection->is_open()) {
    for (size_t i : asked) results[i] = closed_error();
    return done(std::move(results));
  }
  request.set_timeout_ms(timeout_us < 0 ? -1 : (timeout_us + 999) / 1000);
  // The call has no timeout of its own: the pins of an answer that nobody waits for would never be
  // released.
  rpc::call(
      *connection, &Stub::Get, request, -1,
      [this, wanted = std::move(wanted), asked = std::move(asked), results = std::move(results),
       done = std::move(done), held_by = std::move(held_by), ticket = request.arguments(),
       alive = std::weak_ptr<bool>(alive)](Result<proto::GetReply> reply) mutable {
        if (alive.expired()) {
          for (size_t i : asked)
            results[i] = make_error(Code::kUnavailable, "the object store's client is gone");
        } else {
          if (ticket) wait_for_room.arguments.erase(ticket);
          on_got(wanted, asked, results, std::move(reply));
          for (size_t i : asked) {
            auto it = held_by.expired() ? held.end() : held.find(wanted[i].id);
            if (it != held.end()) it->second.task = held_by;
          }
        }
        done(std::move(results));
      });
  if (task) tell_blocked();
}

void StoreClient::free(const std::vector<ObjectId>& ids, const std::vector<Location>& locations) {
  Impl& self = *impl_;
  if (ids.empty()) return;
  // The queue is drained first, so that objects without views are freed at once.
  self.drain();
  proto::FreeRequest request;
  for (const ObjectId& id : ids) {
    request.add_object_ids(id.binary());
    auto it = self.held.find(id);
    if (it != self.held.end()) it->second.freed = true;
  }
  for (const Location& location : locations) {
    auto* to = request.add_locations();
    to->set_node_id(location.node.binary());
    to->set_ip(location.ip);
    to->set_port(location.port);
  }
  if (self.connection->is_open()) rpc::notify(*self.connection, &Stub::Free, request);
}

bool StoreClient::take_untold(const ObjectId& id) {
  auto it = impl_->held.find(id);
  return it != impl_->held.end() && std::exchange(it->second.untold, false);
}

void StoreClient::owner_knows(const ObjectId& id) { impl_->news.told.push_back(id); }

void StoreClient::drain_releases() { impl_->drain(); }

bool StoreClient::is_open() const { return impl_->connection->is_open(); }

void StoreClient::set_closed_handler(std::function<void(const Error&)> handler) {
  impl_->closed_handler = std::move(handler);
}

int64_t StoreClient::capacity() const { return impl_->capacity; }

namespace {

// Runs the loop until `flag` is set, for attach() only: at start-up nothing else waits on the
// loop. Returns false at the deadline.
bool run_until(net::PollLoop& loop, const bool& flag, int64_t deadline_us) {
  net::PollLoop::Ready ready;
  while (!flag) {
    int64_t left = deadline_us - loop.now_us();
    if (left <= 0) return false;
    loop.flush_all();
    loop.wait(ready, std::min<int64_t>(left, 50'000));
    loop.dispatch(ready);
  }
  return true;
}

Result<std::shared_ptr<Mapping>> receive_arena(net::PollLoop& loop, const std::string& path,
                                               int64_t deadline_us, int64_t& size) {
  bool done = false;
  Result<std::unique_ptr<net::Stream>> stream =
      make_error(Code::kTimeout,
                 fmt::format("the object store at {} did not accept a connection in time", path));
  // An answer that comes after the deadline finds the slot empty.
  auto slot = std::make_shared<Result<std::unique_ptr<net::Stream>>*>(&stream);
  loop.connect(net::Address::unix_socket(path), deadline_us - loop.now_us(),
               [slot, &done](Result<std::unique_ptr<net::Stream>> connected) {
                 if (!*slot) return;
                 **slot = std::move(connected);
                 done = true;
               });
  run_until(loop, done, deadline_us);
  *slot = nullptr;
  if (!stream)
    return make_error(
        stream.error().code,
        fmt::format("cannot reach this node's object store at {}: {}. Is ray-object-store running?",
                    path, stream.error().message));
  (*stream)->write(as_bytes(rpc::encode_preamble({"arena", ""})));
  (*stream)->flush();
  auto received = net::receive_with_fds((*stream)->native_handle(), 1,
                                        std::max<int64_t>(1, deadline_us - loop.now_us()));
  if (!received)
    return make_error(received.error().code,
                      fmt::format("the object store at {} did not pass its shared memory on: {}",
                                  path, received.error().message));
  Result<std::shared_ptr<Mapping>> mapping = make_error(
      Code::kProtocol, fmt::format("the object store at {} sent {} descriptors instead of 2", path,
                                   received->fds.size()));
  struct stat info;
  if (received->fds.size() == 2 && ::fstat(received->fds[0], &info) == 0) {
    size = info.st_size;
    mapping = Mapping::map(received->fds[0], received->fds[1], size);
  }
  for (int fd : received->fds) ::close(fd);
  return mapping;
}

}  // namespace

Result<std::unique_ptr<StoreClient>> StoreClient::attach(net::PollLoop& loop,
                                                         const Settings& settings,
                                                         const Options& options,
                                                         int64_t timeout_us) {
  int64_t deadline_us = loop.now_us() + timeout_us;
  int64_t mapped = 0;
  RT_ASSIGN(std::shared_ptr<Mapping> mapping,
            receive_arena(loop, options.socket_path, deadline_us, mapped));

  struct Progress {
    bool done = false;
    Result<std::shared_ptr<rpc::Connection>> connection = make_error(Code::kTimeout, "no answer");
    Result<proto::AttachReply> attached = make_error(Code::kTimeout, "no answer");
  };
  // Shared with callbacks that may run after the timeout.
  auto progress = std::make_shared<Progress>();
  proto::AttachRequest request;
  request.set_worker_id(options.worker_id.binary());
  request.set_job_id(options.job_id.binary());
  request.set_pid(options.pid);
  rpc::connect(loop, {net::Address::unix_socket(options.socket_path), "self", {}}, options.identity,
               timeout_us, [progress, request](Result<std::shared_ptr<rpc::Connection>> connected) {
                 progress->connection = std::move(connected);
                 if (!progress->connection) {
                   progress->done = true;
                   return;
                 }
                 rpc::call(**progress->connection, &Stub::Attach, request, -1,
                           [progress](Result<proto::AttachReply> reply) {
                             progress->attached = std::move(reply);
                             progress->done = true;
                           });
               });
  run_until(loop, progress->done, deadline_us);
  if (!progress->connection) return progress->connection.error();
  std::shared_ptr<rpc::Connection> connection = *progress->connection;
  if (!progress->attached) {
    Error why = progress->attached.error();
    connection->close(why);
    return make_error(why.code, fmt::format("cannot attach to this node's object store at {}: {}",
                                            options.socket_path, why.message));
  }
  if (progress->attached->arena_size() != mapped)
    return make_error(Code::kProtocol,
                      fmt::format("the object store at {} announced {} bytes of memory but its "
                                  "file has {}: restart the node",
                                  options.socket_path, progress->attached->arena_size(), mapped));
  auto impl = std::make_unique<Impl>(settings, connection, std::move(mapping),
                                     progress->attached->capacity(), loop);
  connection->set_closed_handler(
      [raw = impl.get(), alive = std::weak_ptr<bool>(impl->alive)](const Error& why) {
        if (alive.expired()) return;
        raw->closed_why = why.message;
        if (raw->closed_handler) raw->closed_handler(why);
      });
  connection->set_flat_handler(
      [raw = impl.get(), alive = std::weak_ptr<bool>(impl->alive),
       short_of_room = options.on_short_of_room](uint32_t type, Bytes body) {
        if (type == Notice::kShortOfRoom && short_of_room) short_of_room();
        if (!alive.expired()) raw->on_notice(type, body);
      });
  return std::unique_ptr<StoreClient>(new StoreClient(std::move(impl)));
}

}  // namespace rt::store
