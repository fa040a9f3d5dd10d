#include "daemons/object_store/service/fetcher.h"

#include <utility>

#include "common/base/log.h"
#include "common/proto/object_store.pb.h"
#include "common/rpc/client.h"

namespace rt::store {

Fetcher::Fetcher(net::Loop& loop, Peers& peers, Arena& arena, Fetches::Options options,
                 OnCore on_core, OnPiece on_piece)
    : loop_(loop),
      peers_(peers),
      arena_(arena),
      on_core_(std::move(on_core)),
      on_piece_(std::move(on_piece)),
      driver_(loop, options, static_cast<FetchSink&>(*this)) {}

Fetcher::~Fetcher() {
  alive_.reset();
  driver_.stop();
}

template <class Event>
void Fetcher::post(Event event) {
  loop_.post([this, event = std::move(event), alive = std::weak_ptr<bool>(alive_)]() mutable {
    if (!alive.expired()) driver_.drive(event);
  });
}

// ---- StoreCore

void Fetcher::start(const ObjectId& id, std::vector<Source> sources, bool first) {
  orders_.push_back({id, std::move(sources), first});
  if (orders_.size() > 1) return;
  post([this](Fetches& core, Now now) { core.start(std::exchange(orders_, {}), now); });
}

void Fetcher::on_created(CallId call, Result<std::vector<int64_t>> offsets) {
  Result<int64_t> offset = Error{};
  if (offsets) {
    offset = offsets->at(0);
  } else {
    offset = std::move(offsets).error();
  }
  post([call, offset = std::move(offset)](Fetches& core, Now now) {
    core.created(call, offset, now);
  });
}

void Fetcher::create(FetchId fetch, const CreateItem& item) {
  on_core_([&](StoreCore& core, Now now) { core.create(kFetcher, fetch, {item}, true, now); });
}

void Fetcher::seal(const SealItem& item) {
  on_core_([&](StoreCore& core, Now now) { core.seal(kFetcher, {item}, {}, now); });
}

void Fetcher::fail(const ObjectId& object, const Error& why) {
  on_core_([&](StoreCore& core, Now now) { core.on_fetch_failed(object, why, now); });
}

void Fetcher::end(FetchId fetch, const ObjectId& object, End how) {
  connections_.erase(fetch);
  if (how == End::kWithoutRoom) return;
  on_core_([&](StoreCore& core, Now now) {
    if (how == End::kReleased) {
      core.release(kFetcher, {object}, now, {});
    } else {
      core.abort(kFetcher, {object}, now);
    }
  });
}

// ---- sources

void Fetcher::connect(FetchId fetch, const ObjectId&, const Source& source) {
  connections_.erase(fetch);
  peers_.get(source, [this, fetch, alive = std::weak_ptr<bool>(alive_)](
                         Result<std::shared_ptr<rpc::Connection>> connection) {
    if (alive.expired()) return;
    // The answer may have come before get() returned.
    if (connection) {
      connections_[fetch] = std::move(*connection);
      post([fetch](Fetches& core, Now) { core.connected(fetch); });
    } else {
      post([fetch, why = std::move(connection).error()](Fetches& core, Now now) {
        core.connect_failed(fetch, why, now);
      });
    }
  });
}

void Fetcher::describe(FetchId fetch, const ObjectId& object) {
  proto::PullRequest request;
  request.set_object_id(object.binary());
  rpc::call(*connections_.at(fetch), &proto::ObjectStoreService::Stub::Pull, request, -1,
            [this, fetch, alive = std::weak_ptr<bool>(alive_)](Result<proto::PullReply> reply) {
              if (alive.expired()) return;
              Result<Fetches::Description> answer = Error{};
              if (reply) {
                answer = Fetches::Description{reply->total_size(),
                                              WorkerId::from_binary(reply->owner_worker_id())};
              } else {
                answer = std::move(reply).error();
              }
              driver_.drive([&](Fetches& core, Now now) { core.described(fetch, answer, now); });
            });
}

void Fetcher::pull(const ChunkRequest& chunk) {
  proto::PullRequest request;
  request.set_object_id(chunk.object.binary());
  request.set_offset(chunk.range.offset);
  request.set_length(chunk.range.size);
  // The call has no timeout of its own: a late answer would be written into memory that was given
  // up meanwhile.
  rpc::CallOptions options;
  options.response_target = arena_.writable(chunk.to, chunk.range.size);
  rpc::call(
      *connections_.at(chunk.fetch), &proto::ObjectStoreService::Stub::Pull, request,
      std::move(options),
      [this, fetch = chunk.fetch, chunk = chunk.chunk,
       alive = std::weak_ptr<bool>(alive_)](Result<proto::PullReply> reply) {
        if (alive.expired()) return;
        Result<int64_t> total_size = int64_t{0};
        if (reply) {
          total_size = reply->total_size();
        } else {
          total_size = std::move(reply).error();
        }
        driver_.drive([&](Fetches& core, Now now) { core.pulled(fetch, chunk, total_size, now); });
      });
}

void Fetcher::close(FetchId fetch, const Error& why) {
  // The calls over the connection end before close() returns.
  loop_.post([connection = connections_.at(fetch), why] { connection->close(why); });
}

void Fetcher::source_failed(const ObjectId& object, const std::string& source, const Error& why) {
  RT_INFO("object {}: node at {} does not deliver it: {}", object.hex(), source, why.message);
}

// ---- other nodes

void Fetcher::serve(CallId reader, const FetchedPiece& piece) {
  // The piece is dropped when the socket has taken its bytes, possibly within another event.
  auto dropped = [this, fetch = piece.fetch, alive = std::weak_ptr<bool>(alive_)](const void*) {
    if (alive.expired()) return;
    post([fetch](Fetches& core, Now now) { core.piece_sent(fetch, now); });
  };
  Bytes bytes = arena_.readable(piece.range.offset, piece.range.size);
  on_piece_(
      reader,
      Piece{{bytes, Keepalive(bytes.data(), std::move(dropped))}, piece.total_size, piece.owner});
}

void Fetcher::refuse(CallId reader, Error why) { on_piece_(reader, std::move(why)); }

}  // namespace rt::store
