#include "daemons/object_store/service/fetcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/proto/object_store.pb.h"
#include "common/rpc/client.h"

namespace rt::store {

namespace {

std::string name_of(const Source& source) {
  return net::Address::tcp(source.ip, source.port).to_string();
}

}  // namespace

Fetcher::Fetcher(net::Loop& loop, Peers& peers, Arena& arena, Options options, OnCore on_core)
    : loop_(loop), peers_(peers), arena_(arena), options_(options), on_core_(std::move(on_core)) {}

Fetcher::~Fetcher() {
  alive_.reset();
  for (auto& [id, fetch] : fetches_) loop_.cancel(fetch->timer);
}

void Fetcher::start(const ObjectId& id, std::vector<Source> sources, bool first) {
  (first ? first_ : others_).emplace_back(id, std::move(sources));
  // Posted, because the core calls this and must not be called back.
  loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) launch_queued();
  });
}

void Fetcher::launch_queued() {
  if (launch_from(first_)) launch_from(others_);
}

bool Fetcher::launch_from(Queue& queue) {
  for (auto it = queue.begin(); it != queue.end();) {
    auto& [id, sources] = *it;
    int64_t hint = 0;
    for (const Source& source : sources)
      hint = std::max(hint, std::min(source.size, arena_.capacity()));
    if (bytes_ > 0 && bytes_ + hint > options_.max_bytes) return false;
    // The memory of an earlier fetch of this object is still in use.
    if (fetches_.count(id)) {
      ++it;
      continue;
    }
    auto fetch = std::make_shared<Fetch>();
    fetch->id = id;
    fetch->sources = std::move(sources);
    fetch->hinted_bytes = std::max<int64_t>(hint, 1);
    fetch->heard_us = loop_.now_us();
    bytes_ += fetch->hinted_bytes;
    fetches_[id] = fetch;
    it = queue.erase(it);
    watch_progress(fetch);
    next_source(fetch);
  }
  return true;
}

void Fetcher::next_source(const FetchPtr& fetch) {
  if (fetch->finished) return;
  if (fetch->source >= fetch->sources.size()) {
    if (!fetch->unanswered || loop_.now_us() - fetch->heard_us >= options_.patience_us)
      return fail(fetch, fetch->last_error);
    fetch->source = 0;
    fetch->unanswered = false;
  }
  fetch->source_failed = false;
  fetch->connection.reset();
  fetch->progress_us = loop_.now_us();
  peers_.get(fetch->sources[fetch->source],
             [this, fetch, alive = std::weak_ptr<bool>(alive_)](
                 Result<std::shared_ptr<rpc::Connection>> connection) {
               if (alive.expired() || fetch->finished) return;
               if (!connection) {
                 fetch->unanswered |= connection.error().code == Code::kTimeout;
                 return on_source_failed(fetch, connection.error());
               }
               fetch->connection = std::move(*connection);
               probe(fetch);
             });
}

void Fetcher::probe(const FetchPtr& fetch) {
  proto::PullRequest request;
  request.set_object_id(fetch->id.binary());
  fetch->in_flight++;
  rpc::call(
      *fetch->connection, &proto::ObjectStoreService::Stub::Pull, request, -1,
      [this, fetch, alive = std::weak_ptr<bool>(alive_)](Result<proto::PullReply> reply) {
        if (alive.expired()) return;
        fetch->in_flight--;
        if (fetch->finished) return remove_if_unused(fetch);
        if (!reply) return on_source_failed(fetch, reply.error());
        fetch->progress_us = fetch->heard_us = loop_.now_us();
        if (reply->total_size() < 0)
          return on_source_failed(fetch, make_error(Code::kProtocol, "it named a negative size"));
        if (fetch->offset >= 0) {
          if (reply->total_size() != fetch->chunks.size())
            return on_source_failed(
                fetch, make_error(Code::kProtocol,
                                  fmt::format("its copy has {} bytes, another one {}",
                                              reply->total_size(), fetch->chunks.size())));
          return pump(fetch);
        }
        fetch->owner = WorkerId::from_binary(reply->owner_worker_id());
        fetch->chunks =
            ChunkMap(std::min(reply->total_size(), arena_.capacity() + 1), options_.chunk_bytes);
        CallId call = next_call_++;
        creating_[call] = fetch;
        on_core_([&](StoreCore& core, Now now) {
          core.create(kFetcher, call, {{fetch->id, reply->total_size(), fetch->owner}}, true, now);
        });
      });
}

// The core calls this, so the rest is posted.
void Fetcher::on_created(CallId call, Result<std::vector<int64_t>> offsets) {
  auto node = creating_.extract(call);
  RT_CHECK(!node.empty());
  FetchPtr fetch = node.mapped();
  loop_.post([this, fetch, offsets = std::move(offsets), alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    if (!offsets) return fail(fetch, offsets.error());
    fetch->offset = offsets->at(0);
    fetch->progress_us = loop_.now_us();
    pump(fetch);
  });
}

void Fetcher::pump(const FetchPtr& fetch) {
  if (fetch->finished) return;
  if (fetch->chunks.is_complete()) return seal(fetch);
  while (!fetch->source_failed && fetch->in_flight < options_.chunks_in_flight) {
    auto chunk = fetch->chunks.ask_next();
    if (!chunk) return;
    Range range = fetch->chunks.range_of(*chunk);
    proto::PullRequest request;
    request.set_object_id(fetch->id.binary());
    request.set_offset(range.offset);
    request.set_length(range.size);
    // The call has no timeout of its own: a late answer would be written into memory that was
    // given up meanwhile.
    rpc::CallOptions options;
    options.response_target = arena_.writable(fetch->offset + range.offset, range.size);
    fetch->in_flight++;
    rpc::call(*fetch->connection, &proto::ObjectStoreService::Stub::Pull, request,
              std::move(options),
              [this, fetch, chunk = *chunk,
               alive = std::weak_ptr<bool>(alive_)](Result<proto::PullReply> reply) {
                if (alive.expired()) return;
                Error error = reply ? Error{} : reply.error();
                on_chunk(fetch, chunk, reply ? nullptr : &error, reply ? reply->total_size() : 0);
              });
  }
}

void Fetcher::on_chunk(const FetchPtr& fetch, size_t chunk, const Error* error,
                       int64_t total_size) {
  fetch->in_flight--;
  if (fetch->finished) return remove_if_unused(fetch);
  if (error) {
    fetch->chunks.on_failed(chunk);
    return on_source_failed(fetch, *error);
  }
  if (total_size != fetch->chunks.size()) {
    fetch->chunks.on_failed(chunk);
    return on_source_failed(fetch, make_error(Code::kProtocol, "its copy changed size"));
  }
  fetch->chunks.on_received(chunk);
  fetch->progress_us = fetch->heard_us = loop_.now_us();
  serve_waiting(fetch);
  if (fetch->source_failed && fetch->in_flight == 0 && !fetch->chunks.is_complete()) {
    fetch->source++;
    return next_source(fetch);
  }
  pump(fetch);
}

void Fetcher::on_source_failed(const FetchPtr& fetch, const Error& error) {
  const Source& source = fetch->sources[fetch->source];
  if (!fetch->source_failed) {
    RT_INFO("object {}: node at {} does not deliver it: {}", fetch->id.hex(), name_of(source),
            error.message);
    fetch->last_error = make_error(
        Code::kObjectLost,
        fmt::format("object {} could not be fetched from any of {} nodes; the last, {}: {}",
                    fetch->id.hex(), fetch->sources.size(), name_of(source), error.message));
  }
  fetch->source_failed = true;
  // All calls end before the next source is asked.
  if (fetch->in_flight > 0) return;
  fetch->source++;
  next_source(fetch);
}

bool Fetcher::is_receiving(const ObjectId& id) const {
  auto it = fetches_.find(id);
  return it != fetches_.end() && !it->second->finished;
}

void Fetcher::when_received(const ObjectId& id, Range range, GotPiece done) {
  FetchPtr fetch = fetches_.at(id);
  fetch->waiting.push_back({range, std::move(done)});
  if (fetch->offset >= 0) serve_waiting(fetch);
}

void Fetcher::serve_waiting(const FetchPtr& fetch) {
  std::vector<Waiting> ready;
  for (auto it = fetch->waiting.begin(); it != fetch->waiting.end();) {
    bool outside = it->range.offset > fetch->chunks.size() ||
                   it->range.size > fetch->chunks.size() - it->range.offset;
    if (outside || fetch->chunks.has(it->range)) {
      ready.push_back(std::move(*it));
      it = fetch->waiting.erase(it);
    } else {
      ++it;
    }
  }
  for (Waiting& waiting : ready) {
    bool outside = waiting.range.offset > fetch->chunks.size() ||
                   waiting.range.size > fetch->chunks.size() - waiting.range.offset;
    if (outside) {
      waiting.done(make_error(Code::kInvalid, fmt::format("object {} has {} bytes", fetch->id.hex(),
                                                          fetch->chunks.size())));
    } else {
      waiting.done(piece_of(fetch, waiting.range));
    }
  }
}

Fetcher::Piece Fetcher::piece_of(const FetchPtr& fetch, Range range) {
  fetch->serving++;
  // The piece is dropped when the socket has taken its bytes, possibly within another event, so
  // the rest is posted.
  auto dropped = [this, fetch, alive = std::weak_ptr<bool>(alive_)](const void*) {
    if (alive.expired()) return;
    loop_.post([this, fetch, alive] {
      if (alive.expired()) return;
      fetch->serving--;
      if (fetch->finished) remove_if_unused(fetch);
    });
  };
  Bytes bytes = arena_.readable(fetch->offset + range.offset, range.size);
  return {{bytes, Keepalive(bytes.data(), std::move(dropped))}, fetch->chunks.size(), fetch->owner};
}

void Fetcher::seal(const FetchPtr& fetch) {
  fetch->finished = fetch->sealed = true;
  serve_waiting(fetch);
  on_core_([&](StoreCore& core, Now now) {
    core.seal(kFetcher, {{fetch->id, fetch->offset, fetch->chunks.size(), 0, fetch->owner}}, {},
              now);
  });
  remove_if_unused(fetch);
}

void Fetcher::fail(const FetchPtr& fetch, const Error& error) {
  fetch->finished = true;
  for (Waiting& waiting : std::exchange(fetch->waiting, {}))
    waiting.done(make_error(Code::kNotFound, error.message));
  on_core_([&](StoreCore& core, Now now) { core.on_fetch_failed(fetch->id, error, now); });
  remove_if_unused(fetch);
}

// Removes a finished fetch once nobody reads from its memory or writes to it any more.
void Fetcher::remove_if_unused(const FetchPtr& fetch) {
  if (fetch->in_flight > 0 || fetch->serving > 0) return;
  if (fetches_.erase(fetch->id) == 0) return;
  loop_.cancel(fetch->timer);
  bytes_ -= fetch->hinted_bytes;
  on_core_([&](StoreCore& core, Now now) {
    if (fetch->sealed) {
      core.release(kFetcher, {fetch->id}, now, {});
    } else if (fetch->offset >= 0) {
      core.abort(kFetcher, {fetch->id}, now);
    }
  });
  launch_queued();
}

void Fetcher::watch_progress(const FetchPtr& fetch) {
  int64_t due = fetch->progress_us == 0
                    ? options_.no_progress_us
                    : fetch->progress_us + options_.no_progress_us - loop_.now_us();
  fetch->timer = loop_.run_after(std::max<int64_t>(due, 1000), [this, fetch] {
    bool stalled =
        fetch->in_flight > 0 && loop_.now_us() - fetch->progress_us >= options_.no_progress_us;
    if (stalled && fetch->connection) {
      // Closing the connection ends its calls, and with them their hold on the arena.
      std::shared_ptr<rpc::Connection> connection = fetch->connection;
      connection->close(make_error(
          Code::kTimeout, fmt::format("no progress for {} ms", options_.no_progress_us / 1000)));
    }
    auto it = fetches_.find(fetch->id);
    if (it != fetches_.end() && it->second == fetch) {
      if (stalled) fetch->progress_us = loop_.now_us();
      watch_progress(fetch);
    }
  });
}

}  // namespace rt::store
