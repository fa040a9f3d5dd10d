#include "tests/sim/sim_fetcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "tests/sim/sim_store.h"

namespace rt::sim {
namespace {

store::Fetches::Options fetch_options(const Settings& settings, int64_t capacity) {
  store::Fetches::Options options;
  options.capacity = capacity;
  options.chunk_bytes = settings.transfer_chunk_bytes;
  options.chunks_in_flight = settings.transfer_chunks_in_flight;
  options.no_progress_us = settings.object_fetch_timeout_ms * 1000;
  options.patience_us = settings.object_fetch_timeout_ms * 1000;
  options.max_bytes = settings.fetch_max_bytes;
  return options;
}

}  // namespace

SimFetcher::SimFetcher(World& world, SimStore& store, int64_t capacity)
    : world_(world),
      store_(store),
      options_(fetch_options(world.settings, capacity)),
      core_(options_, *this) {}

void SimFetcher::wrong(const std::string& what) const {
  violation(fmt::format("seed {}: store #{} {}", world_.seed, store_.number(), what));
}

void SimFetcher::post(const char* what, std::function<void(store::Fetches&, Now)> event) {
  store_.after(0, what, [this, event = std::move(event)] { drive(event); });
}

void SimFetcher::arm_tick() {
  store_.ring_by(tick_alarm_, core_.next_tick_us(), "fetches tick",
                 [this] { drive([](store::Fetches& core, Now now) { core.tick(now); }); });
}

// ---- the StoreCore

void SimFetcher::start(const ObjectId& id, std::vector<store::Source> sources, bool first) {
  orders_.push_back({id, std::move(sources), first});
  if (orders_.size() > 1) return;
  post("fetches start", [this](store::Fetches& core, Now now) {
    for (const store::FetchOrder& order : orders_) {
      Waiting& waiting = waiting_[order.object];
      waiting.first = order.first;
      for (const store::Source& source : order.sources)
        waiting.hint = std::max(waiting.hint, std::min(source.size, options_.capacity));
    }
    core.start(std::exchange(orders_, {}), now);
  });
}

void SimFetcher::created(store::FetchId fetch, Result<int64_t> offset) {
  post("copy has room", [this, fetch, offset = std::move(offset)](store::Fetches& core, Now now) {
    if (offset) running_.at(fetch).room = {*offset, running_.at(fetch).size};
    core.created(fetch, offset, now);
  });
}

void SimFetcher::create(store::FetchId fetch, const store::CreateItem& item) {
  running_.at(fetch).size = item.size;
  store_.drive([&](store::StoreCore& core, Now now) {
    core.create(store::kFetcher, fetch, {item}, true, now);
  });
}

void SimFetcher::seal(const store::SealItem& item) {
  auto sealed = std::find_if(running_.begin(), running_.end(),
                             [&](const auto& one) { return one.second.object == item.id; });
  const Running& fetch = sealed->second;
  if (!fetch.room || fetch.room->offset != item.offset || fetch.size != item.size)
    wrong("seals a copy that is not there");
  if (!has(fetch, {0, item.size})) wrong("seals a copy of which not all bytes have arrived");
  store_.drive(
      [&](store::StoreCore& core, Now now) { core.seal(store::kFetcher, {item}, {}, now); });
}

void SimFetcher::fail(const ObjectId& object, const Error& why) {
  store_.drive([&](store::StoreCore& core, Now now) { core.on_fetch_failed(object, why, now); });
}

void SimFetcher::end(store::FetchId fetch, const ObjectId& object, End how) {
  const Running ended = running_.extract(fetch).mapped();
  if (ended.readers > 0) wrong("gives up the room of a copy that another node reads");
  if (ended.writers > 0) wrong("gives up the room of a copy that another node writes to");
  if (ended.room.has_value() != (how != End::kWithoutRoom)) wrong("forgets the room of a copy");
  if (how == End::kWithoutRoom) return;
  store_.drive([&](store::StoreCore& core, Now now) {
    if (how == End::kReleased) {
      core.release(store::kFetcher, {object}, now, {});
    } else {
      core.abort(store::kFetcher, {object}, now);
    }
  });
}

// ---- sources

SimFetcher::Running& SimFetcher::launched(store::FetchId fetch, const ObjectId& object) {
  const Waiting waiting = waiting_.extract(object).mapped();
  int64_t bytes = 0;
  std::set<ObjectId> under_way;
  for (const auto& [number, running] : running_) {
    bytes += running.hint;
    if (!under_way.insert(running.object).second) wrong("fetches an object twice at once");
  }
  if (under_way.contains(object)) wrong("fetches an object into two places");
  if (bytes > 0 && bytes + waiting.hint > options_.max_bytes)
    wrong("fetches more bytes at once than it may");
  for (const auto& [other, order] : waiting_) {
    if (order.first && !waiting.first && !under_way.contains(other))
      wrong("begins a fetch before one for which a task waits that runs");
  }
  Running& running = running_[fetch];
  running.object = object;
  running.hint = std::max<int64_t>(1, waiting.hint);
  return running;
}

void SimFetcher::connect(store::FetchId fetch, const ObjectId& object,
                         const store::Source& source) {
  auto known = running_.find(fetch);
  Running& running = known == running_.end() ? launched(fetch, object) : known->second;
  if (running.writers > 0) wrong("asks a source while another one still writes");
  Peer& peer = peers_[source.node];
  running.source = nullptr;
  if (peer.channel && peer.channel->open()) {
    running.source = peer.channel;
    return post("source is connected",
                [fetch](store::Fetches& core, Now) { core.connected(fetch); });
  }
  peer.waiting.push_back(fetch);
  if (peer.waiting.size() == 1) connect_peer(source.node);
}

void SimFetcher::connect_peer(const NodeId& node) {
  SimStore* to = world_.stores.at(node);
  world_.network.connect(
      store_, to->host(), "store connects to another one", [to]() -> Process* { return to; },
      [this, node](Result<ChannelPtr> channel) { peer_connected(node, std::move(channel)); });
}

void SimFetcher::peer_connected(const NodeId& node, Result<ChannelPtr> channel) {
  Peer& peer = peers_.at(node);
  if (channel) peer.channel = *channel;
  for (store::FetchId fetch : std::exchange(peer.waiting, {})) {
    if (channel) running_.at(fetch).source = *channel;
    drive([&](store::Fetches& core, Now now) {
      channel ? core.connected(fetch) : core.connect_failed(fetch, channel.error(), now);
    });
  }
}

void SimFetcher::describe(store::FetchId fetch, const ObjectId& object) {
  running_.at(fetch).source->call<PullAnswer>(
      "describe",
      [object](Channel& at, Channel::Answer<PullAnswer> answer) {
        store_at(at).serve_pull(at, object, {}, std::move(answer));
      },
      [this, fetch](Result<PullAnswer> answer) {
        Result<store::Fetches::Description> described = store::Fetches::Description{};
        if (answer) {
          described->size = answer->total_size;
        } else {
          described = answer.error();
        }
        drive([&](store::Fetches& core, Now now) { core.described(fetch, described, now); });
      });
}

void SimFetcher::pull(const store::ChunkRequest& request) {
  Running& running = running_.at(request.fetch);
  const store::Range into{request.to, request.range.size};
  if (!running.room || into.offset != running.room->offset + request.range.offset ||
      into.end() > running.room->end())
    wrong("has a chunk written beside the room of its copy");
  if (has(running, request.range) && request.range.size > 0)
    wrong("asks for a chunk that has arrived");
  running.writers++;
  running.source->call<PullAnswer>(
      "pull",
      [request](Channel& at, Channel::Answer<PullAnswer> answer) {
        store_at(at).serve_pull(at, request.object, request.range, std::move(answer));
      },
      [this, request](Result<PullAnswer> answer) { chunk_arrived(request, answer); });
}

void SimFetcher::chunk_arrived(const store::ChunkRequest& request,
                               const Result<PullAnswer>& answer) {
  auto found = running_.find(request.fetch);
  if (found == running_.end()) wrong("gave up the room into which a chunk is written");
  Running& running = found->second;
  running.writers--;
  // The bytes of a copy of another size are not those of this one.
  if (answer && answer->total_size == running.size)
    running.written[request.range.offset] = request.range.size;
  Result<int64_t> total_size = int64_t{0};
  if (answer) {
    total_size = answer->total_size;
  } else {
    total_size = answer.error();
  }
  drive([&](store::Fetches& core, Now now) {
    core.pulled(request.fetch, request.chunk, total_size, now);
  });
}

void SimFetcher::close(store::FetchId fetch, const Error&) {
  store_.after(0, "close a source", [source = running_.at(fetch).source] { source->close(); });
}

void SimFetcher::source_failed(const ObjectId&, const std::string&, const Error&) {}

// ---- other stores

bool SimFetcher::has(const Running& fetch, store::Range range) {
  int64_t at = range.offset;
  auto chunk = fetch.written.upper_bound(at);
  if (chunk != fetch.written.begin()) --chunk;
  for (; at < range.end() && chunk != fetch.written.end(); ++chunk) {
    if (chunk->first > at) return false;
    at = std::max(at, chunk->first + chunk->second);
  }
  return at >= range.end();
}

void SimFetcher::read(store::CallId reader, const ObjectId& id, store::Range range) {
  drive([&](store::Fetches& core, Now) { core.read(reader, id, range); });
}

void SimFetcher::serve(store::CallId reader, const store::FetchedPiece& piece) {
  Running& running = running_.at(piece.fetch);
  if (!running.room || piece.total_size != running.size ||
      !has(running, {piece.range.offset - running.room->offset, piece.range.size}))
    wrong("sends bytes of a copy that have not arrived");
  running.readers++;
  store_.send_piece(reader, piece);
}

void SimFetcher::piece_sent(store::FetchId fetch) {
  auto found = running_.find(fetch);
  if (found == running_.end()) wrong("gave up the room from which a piece is sent");
  found->second.readers--;
  drive([&](store::Fetches& core, Now now) { core.piece_sent(fetch, now); });
}

void SimFetcher::refuse(store::CallId reader, Error why) { store_.refuse_pull(reader, why); }

}  // namespace rt::sim
