#include "daemons/object_store/service/store_service.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/rpc/client.h"

namespace rt::store {

namespace {

// So many bytes are reserved before any client waits for pages. Reserving costs processor time,
// which the rest of the node needs while it starts: a few pages come at once, and the others when
// the node is up.
constexpr int64_t kBackgroundPages = 64 << 20;
constexpr int64_t kFirstPages = 8 << 20, kOtherPagesAfterUs = 200'000;

StoreCore::Options core_options(const Settings& settings, const Arena& arena, const NodeId& node) {
  StoreCore::Options options;
  options.capacity = arena.capacity();
  options.node = node;
  options.create_wait_us = settings.create_wait_ms * 1000;
  options.seal_grace_us = settings.seal_grace_ms * 1000;
  options.reserve_step = kBackgroundPages;
  options.max_waiting = static_cast<size_t>(std::max<int64_t>(1, settings.store_max_waiting));
  return options;
}

Fetches::Options fetch_options(const Settings& settings, const Arena& arena) {
  Fetches::Options options;
  options.capacity = arena.capacity();
  options.chunk_bytes =
      std::clamp<int64_t>(settings.transfer_chunk_bytes, 64 * 1024, rpc::kMaxFrameBytes / 2);
  options.chunks_in_flight = std::max<int64_t>(1, settings.transfer_chunks_in_flight);
  options.no_progress_us = settings.object_fetch_timeout_ms * 1000;
  options.patience_us = settings.object_fetch_timeout_ms * 1000;
  options.max_bytes = settings.fetch_max_bytes;
  return options;
}

}  // namespace

StoreService::StoreService(net::Loop& loop, const Settings& settings, std::unique_ptr<Arena> arena,
                           Options options)
    : loop_(loop),
      settings_(settings),
      options_(std::move(options)),
      arena_(std::move(arena)),
      driver_(loop, core_options(settings, *arena_, options_.node), static_cast<StoreSink&>(*this)),
      peers_(loop, options_.identity, settings.connect_timeout_ms * 1000),
      fetcher_(
          loop, peers_, *arena_, fetch_options(settings, *arena_),
          [this](auto& event) { driver_.drive(event); },
          [this](CallId call, Result<Fetcher::Piece> piece) {
            finish_pull(held_.take(call), std::move(piece));
          }),
      reserver_(*arena_, [this, alive = std::weak_ptr<bool>(alive_)](int64_t up_to, Status status) {
        loop_.post([this, alive, up_to, status = std::move(status)] {
          if (!alive.expired())
            driver_.drive([&](StoreCore& core, Now now) { core.on_reserved(up_to, status, now); });
        });
      }) {
  rpc::ServerOptions server;
  server.identity = options_.identity;
  server.hello_timeout_us = settings.hello_timeout_ms * 1000;
  server.max_connections = static_cast<int>(settings.max_connections);
  server.on_connection = [this](const std::shared_ptr<rpc::Connection>& connection) {
    on_connection(connection);
  };
  server.on_foreign = [this](const rpc::Preamble& preamble, int fd, bool is_unix) {
    return on_foreign(preamble, fd, is_unix);
  };
  server_ = std::make_unique<rpc::Server>(loop, std::move(server));
  driver_.drive([](StoreCore& core, Now) { core.reserve_ahead(kFirstPages); });
  loop_.run_after(kOtherPagesAfterUs, [this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired())
      driver_.drive([](StoreCore& core, Now) { core.reserve_ahead(kBackgroundPages); });
  });
}

StoreService::~StoreService() {
  alive_.reset();
  driver_.stop();
  // Requests that wait end with an error, and their connections end with the server.
  for (const Held::Call& held : held_.take_all()) {
    held.reply.call->fail(
        make_error(Code::kUnavailable, "this object store is being stopped, with its node"));
    held.reply.done->Run();
  }
  for (auto& [connection, client] : std::exchange(clients_, {})) {
    if (auto open = client.connection.lock()) open->set_closed_handler(nullptr);
  }
  server_.reset();
}

void StoreService::on_connection(const std::shared_ptr<rpc::Connection>& connection) {
  Client client;
  client.id = next_client_++;
  client.connection = connection;
  client.is_local = connection->peer().is_unix;
  client.is_store = connection->peer().role == "object_store";
  // A store has one node-manager. Another one that connects by mistake has no rights, and its end
  // does not end the store.
  bool ruled = std::any_of(clients_.begin(), clients_.end(),
                           [](const auto& entry) { return entry.second.is_node_manager; });
  client.is_node_manager = client.is_local && !ruled && connection->peer().role == "node_manager";
  rpc::Connection* raw = connection.get();
  by_id_[client.id] = raw;
  clients_[raw] = std::move(client);
  connection->add_service(this);
  connection->add_service(&profile_);
  connection->set_closed_handler([this, raw, alive = std::weak_ptr<bool>(alive_)](const Error&) {
    if (!alive.expired()) on_closed(raw);
  });
}

void StoreService::on_closed(rpc::Connection* connection) {
  auto it = clients_.find(connection);
  if (it == clients_.end()) return;
  ClientId id = it->second.id;
  if (it->second.is_node_manager) {
    // The node has left its cluster. Nobody can name these objects any more, and the next
    // node-manager brings a store of its own.
    RT_INFO("the node-manager of this node is gone: the object store ends with it");
    if (options_.on_stop) loop_.post(options_.on_stop);
  }
  clients_.erase(it);
  by_id_.erase(id);
  for (const Held::Call& held : held_.take_all_of(id)) held.reply.done->Run();
  driver_.drive([id](StoreCore& core, Now now) { core.client_gone(id, now); });
}

// Sends the arena's descriptors to processes that may open the Unix socket, and takes over
// connections to "store" if this store has a TCP port of its own.
bool StoreService::on_foreign(const rpc::Preamble& preamble, int fd, bool is_unix) {
  if (preamble.target == "store") {
    server_->adopt(fd);
    return true;
  }
  if (preamble.target != "arena" || !is_unix) return false;
  int fds[2] = {arena_->read_write_fd(), arena_->read_only_fd()};
  Status sent = net::send_with_fds(fd, "A", fds, 2);
  if (!sent) RT_WARN("a client did not accept the arena's descriptors: {}", sent.error().message);
  ::close(fd);
  return true;
}

StoreService::Client* StoreService::admit(Controller* controller, Who who, Closure* done) {
  auto it = clients_.find(rpc::server_call(controller).connection().get());
  if (it == clients_.end()) {
    // The connection was closed meanwhile.
    done->Run();
    return nullptr;
  }
  Client& client = it->second;
  bool allowed = false;
  switch (who) {
    case Who::kAttached: allowed = client.is_local && client.attached; break;
    case Who::kLocal: allowed = client.is_local; break;
    case Who::kLocalOrStore: allowed = client.is_local || client.is_store; break;
    case Who::kAnyone: allowed = true; break;
  }
  if (allowed) return &client;
  reject(controller, done,
         make_error(Code::kInvalid,
                    client.is_local
                        ? "call Attach first"
                        : "this method of the object store is for processes of its own node"));
  return nullptr;
}

void StoreService::reject(Controller* controller, Closure* done, Error error) {
  rpc::server_call(controller).fail(std::move(error));
  done->Run();
}

void StoreService::close(Client& client, const Error& why) { disconnect(client.id, why); }

void StoreService::disconnect(ClientId id, Error why) {
  RT_WARN("closing the connection of client {}: it {}", id, why.message);
  // The event is posted, because the core or the connection's own call is running.
  loop_.post([this, id, why = std::move(why), alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    auto it = by_id_.find(id);
    if (it == by_id_.end()) return;
    rpc::Connection* raw = it->second;
    if (auto connection = clients_.at(raw).connection.lock())
      connection->close(
          make_error(Code::kInvalid, "the object store closed this connection: it " + why.message));
    // The connection may not have called its handler.
    on_closed(raw);
  });
}

void StoreService::reply_create(ClientId client, CallId call,
                                Result<std::vector<int64_t>> offsets) {
  if (client == kFetcher) return fetcher_.on_created(call, std::move(offsets));
  auto held = held_.take(call);
  if (!held) return;
  if (offsets) {
    auto* reply = std::get<proto::CreateReply*>(held->reply.message);
    for (int64_t offset : *offsets) reply->add_offsets(offset);
  } else {
    held->reply.call->fail(offsets.error());
  }
  held->reply.done->Run();
}

void StoreService::reply_lease(ClientId, CallId call, Result<LeasedExtent> extent) {
  auto held = held_.take(call);
  if (!held) return;
  if (extent) {
    auto* reply = std::get<proto::LeaseExtentReply*>(held->reply.message);
    reply->set_extent_id(extent->id);
    reply->set_offset(extent->range.offset);
    reply->set_size(extent->range.size);
  } else {
    held->reply.call->fail(extent.error());
  }
  held->reply.done->Run();
}

void StoreService::reply_get(ClientId client, CallId call, std::vector<GetAnswer> answers) {
  auto held = held_.take(call);
  if (!held) return;
  if (client == kTransfer) {
    const GetAnswer& answer = answers.at(0);
    if (!answer.found) return finish_pull(held, make_error(Code::kNotFound, answer.error.message));
    return finish_pull(held, pinned_piece(*held, answer));
  }
  auto* reply = std::get<proto::GetReply*>(held->reply.message);
  for (GetAnswer& answer : answers) {
    auto* object = reply->add_objects();
    object->set_found(answer.found);
    if (answer.found) {
      object->set_offset(answer.offset);
      object->set_size(answer.size);
      object->set_untold(answer.untold);
    } else {
      object->set_error_code(static_cast<int>(answer.error.code));
      object->set_error(std::move(answer.error.message));
    }
  }
  held->reply.done->Run();
}

void StoreService::reserve(int64_t up_to) { reserver_.reserve(up_to); }

void StoreService::fetch(const ObjectId& id, const std::vector<Source>& sources, bool first) {
  fetcher_.start(id, sources, first);
}

void StoreService::tell(const Notice& notice) {
  for (auto& [raw, client] : clients_) {
    if (!client.attached || (notice.client != 0 && client.id != notice.client)) continue;
    auto connection = client.connection.lock();
    if (!connection) continue;
    std::string& out = connection->begin_flat(notice.type);
    if (notice.ticket != 0)
      out.append(reinterpret_cast<const char*>(&notice.ticket), sizeof(notice.ticket));
    connection->end_flat();
    connection->flush();
  }
}

}  // namespace rt::store
