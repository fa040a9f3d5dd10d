#include "tests/sim/arena_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "tests/sim/arena_user.h"

namespace rt::sim {
namespace {

constexpr int64_t kFirstPages = 256 << 10, kOtherPagesAfterUs = 200'000;
constexpr int64_t kBytesPerUs = 500;

store::StoreCore::Options core_options(const Arena& arena) {
  store::StoreCore::Options options;
  options.capacity = arena.capacity;
  options.create_wait_us = arena.world.settings.create_wait_ms * 1000;
  options.seal_grace_us = arena.world.settings.seal_grace_ms * 1000;
  options.reserve_step = 256 << 10;
  options.node = arena.node;
  return options;
}

}  // namespace

ArenaStore::ArenaStore(Arena& arena, int host)
    : Process(arena.world.clock, arena.world.network, host),
      arena_(arena),
      core_(core_options(arena), *this) {
  drive([](store::StoreCore& core, Now) { core.reserve_ahead(kFirstPages); });
  after(kOtherPagesAfterUs, "other pages", [this] {
    drive([this](store::StoreCore& core, Now) { core.reserve_ahead(arena_.capacity / 2); });
  });
}

void ArenaStore::wrong(const std::string& what) const {
  violation(fmt::format("seed {}: the store {}", arena_.world.seed, what));
}

void ArenaStore::arm_tick() {
  ring_by(tick_alarm_, core_.next_tick_us(), "store tick",
          [this] { drive([](store::StoreCore& core, Now now) { core.tick(now); }); });
}

// ---- clients

void ArenaStore::accepted(const ChannelPtr& channel) {
  const store::ClientId client = client_of(*channel);
  auto* user = dynamic_cast<ArenaUser*>(channel->peer());
  clients_[client] = {channel, user};
  channel->on_closed = [this, client] { client_gone(client); };
  if (user) RT_CHECK(core_.attach(client, user->worker(), JobId(), 0));
}

void ArenaStore::client_gone(store::ClientId client) {
  if (clients_.erase(client) == 0) return;
  held_.take_all_of(client);
  std::erase_if(asked_, [client](const auto& entry) { return entry.second.client == client; });
  arena_.objects.client_gone(client);
  drive([client](store::StoreCore& core, Now now) { core.client_gone(client, now); });
}

ArenaUser* ArenaStore::reader(store::ClientId client) const {
  auto known = clients_.find(client);
  if (known == clients_.end() || known->second.is_condemned) return nullptr;
  ArenaUser* user = known->second.user;
  return user && user->alive() && !user->breaks_rules() ? user : nullptr;
}

void ArenaStore::disconnect(store::ClientId client, Error why) {
  auto known = clients_.find(client);
  if (known == clients_.end()) wrong(fmt::format("ends its own part {}: {}", client, why.message));
  if (!known->second.user->breaks_rules())
    wrong(fmt::format("disconnects client {}, which keeps the rules: it {}", client, why.message));
  known->second.is_condemned = true;
  after(0, "close a client", [this, client, channel = known->second.channel] {
    channel->close();
    client_gone(client);
  });
}

void ArenaStore::owners_gone(const std::vector<WorkerId>& workers, const std::vector<JobId>& jobs) {
  for (const WorkerId& worker : workers) arena_.objects.owner_gone(worker);
  drive([&](store::StoreCore& core, Now now) { core.free_owned_by({workers, jobs, {}}, now); });
}

store::CallId ArenaStore::hold(Channel& from, Reply reply, std::vector<store::CreateItem> items) {
  const store::CallId call = held_.add({client_of(from), std::move(reply)});
  asked_[call] = {client_of(from), std::move(items), 0, {}, {}};
  return call;
}

void ArenaStore::create(Channel& from, std::vector<store::CreateItem> items, bool wait,
                        Answer<Offsets> answer) {
  const store::CallId call = hold(from, std::move(answer), items);
  drive([&](store::StoreCore& core, Now now) {
    core.create(client_of(from), call, std::move(items), wait, now);
  });
}

void ArenaStore::reply_create(store::ClientId client, store::CallId call, Result<Offsets> offsets) {
  if (client == store::kFetcher) return fetch_created(call, offsets);
  auto held = held_.take(call);
  const std::vector<store::CreateItem> items = asked_.extract(call).mapped().items;
  if (!held) return;
  int64_t wanted = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    wanted += store::round_up(std::max<int64_t>(items[i].size, 1), store::kPage);
    if (!offsets) continue;
    // A write here would harm others, also if this client has ended.
    const store::Range range{(*offsets)[i], items[i].size};
    arena_.memory.granted(client, range);
    if (!reader(client)) arena_.memory.given_up(client, range);
  }
  if (!offsets && offsets.error().code == Code::kObjectStoreFull && wanted <= largest_hole())
    wrong(fmt::format("has no room for {} bytes: {}", wanted, offsets.error().message));
  std::get<Answer<Offsets>>(held->reply)(std::move(offsets));
}

void ArenaStore::lease(Channel& from, int64_t size, Answer<store::LeasedExtent> answer) {
  const store::CallId call = hold(from, std::move(answer), {{}});
  drive([&](store::StoreCore& core, Now now) {
    core.lease_extent(client_of(from), call, size, now);
  });
}

void ArenaStore::reply_lease(store::ClientId client, store::CallId call,
                             Result<store::LeasedExtent> extent) {
  auto held = held_.take(call);
  asked_.erase(call);
  if (!held) return;
  if (extent) {
    clients_.at(client).extents++;
    arena_.memory.granted(client, extent->range);
    if (!reader(client)) arena_.memory.given_up(client, extent->range);
  }
  std::get<Answer<store::LeasedExtent>>(held->reply)(std::move(extent));
}

void ArenaStore::seal(Channel& from, const std::vector<store::SealItem>& items,
                      const std::vector<uint64_t>& finished) {
  const store::ClientId client = client_of(from);
  Client& known = clients_.at(client);
  known.extents -= std::ssize(finished);
  for (const store::SealItem& item : items)
    arena_.objects.sealed(client, known.user->worker(), item);
  drive([&](store::StoreCore& core, Now now) { core.seal(client, items, finished, now); });
}

void ArenaStore::abort(Channel& from, const ObjectId& id) {
  drive([&](store::StoreCore& core, Now now) { core.abort(client_of(from), {id}, now); });
}

void ArenaStore::release(Channel& from, const std::vector<ObjectId>& ids,
                         const std::vector<ObjectId>& told) {
  const store::ClientId client = client_of(from);
  for (const ObjectId& id : told) arena_.objects.told(client, id);
  for (const ObjectId& id : ids) arena_.objects.released(client, id);
  drive([&](store::StoreCore& core, Now now) { core.release(client, ids, now, told); });
}

void ArenaStore::update_tasks(Channel& from, const std::vector<store::Ticket>& ended,
                              std::optional<bool> blocked) {
  drive([&](store::StoreCore& core, Now now) {
    core.update_tasks(client_of(from), ended, blocked, now);
  });
}

void ArenaStore::free(const ObjectId& id) {
  arena_.objects.freed(id);
  drive([&](store::StoreCore& core, Now now) { core.free({id}, now); });
}

void ArenaStore::break_rules(
    Channel& from, const char* what,
    const std::function<void(store::StoreCore&, store::ClientId, Now)>& event) {
  const store::ClientId client = client_of(from);
  drive([&](store::StoreCore& core, Now now) { event(core, client, now); });
  if (!clients_.at(client).is_condemned)
    wrong(fmt::format("goes on with client {}, which {}", client, what));
}

// ---- what clients want to read

void ArenaStore::get(Channel& from, std::vector<store::WantedItem> items, int64_t timeout_us,
                     store::Ticket ticket, Answer<Answers> answer) {
  const store::ClientId client = client_of(from);
  Asked asked{client, {}, ticket, {}, {}};
  for (const store::WantedItem& item : items) {
    asked.items.push_back({item.id, 0, WorkerId()});
    if (arena_.objects.must_be_found(item.id)) asked.here.insert(item.id);
    // An object that another request has found already is held for this client.
    if (arena_.objects.must_be_gone(client, item.id) && !asks_for(client, item.id))
      asked.gone.insert(item.id);
  }
  const bool is_all_here = ticket == 0 && asked.here.size() == items.size();
  const store::CallId call = held_.add({client, std::move(answer)});
  asked_[call] = std::move(asked);
  drive([&](store::StoreCore& core, Now now) {
    core.get(client, call, std::move(items), timeout_us, now, ticket);
  });
  if (is_all_here && asked_.contains(call)) wrong("lets a client wait for what is here");
}

bool ArenaStore::asks_for(store::ClientId client, const ObjectId& id) const {
  return std::ranges::any_of(asked_, [&](const auto& entry) {
    const Asked& asked = entry.second;
    return asked.client == client &&
           std::ranges::any_of(asked.items, [&](const auto& item) { return item.id == id; });
  });
}

void ArenaStore::reply_get(store::ClientId client, store::CallId call, Answers answers) {
  auto held = held_.take(call);
  if (client == store::kTransfer) {
    if (!held) return;
    if (!answers[0].found)
      return std::get<Answer<Piece>>(held->reply)(
          make_error(Code::kNotFound, answers[0].error.message));
    return send_piece(*held, answers[0]);
  }
  const Asked asked = asked_.extract(call).mapped();
  if (!held) return;
  for (size_t i = 0; i < asked.items.size(); ++i) {
    const ObjectId& id = asked.items[i].id;
    if (!answers[i].found) {
      if (answers[i].error.code == Code::kObjectStoreFull && asked.ticket != 0)
        wrong(fmt::format("refuses a task its arguments: {}", answers[i].error.message));
      if (answers[i].error.code == Code::kObjectLost && asked.here.contains(id))
        wrong(fmt::format("says that {} is lost, which is here", id.hex()));
      continue;
    }
    if (asked.gone.contains(id) && arena_.objects.must_be_gone(client, id))
      wrong(fmt::format("shows client {} object {}, which was freed", client, id.hex()));
    arena_.objects.pinned(client, id);
    if (reader(client)) arena_.memory.pinned(client, {answers[i].offset, answers[i].size}, id);
  }
  std::get<Answer<Answers>>(held->reply)(std::move(answers));
}

// ---- other stores

void ArenaStore::pull(Channel& from, const ObjectId& id, store::Range range, Answer<Piece> answer) {
  const store::CallId call = held_.add({client_of(from), std::move(answer), id, range});
  store::Source here;
  here.node = arena_.node;
  drive([&](store::StoreCore& core, Now now) {
    core.get(store::kTransfer, call, {{id, {here}}}, arena_.world.settings.seal_grace_ms * 1000,
             now, 0);
  });
}

void ArenaStore::send_piece(const Held::Call& pull, const store::GetAnswer& got) {
  const ObjectId id = pull.pulled;
  arena_.objects.pinned(store::kTransfer, id);
  arena_.memory.pinned(store::kTransfer, {got.offset, got.size}, id);
  ++sending_;
  // If the other store is gone, nothing has to be sent.
  const bool is_gone = !clients_.contains(pull.client);
  const int64_t takes_us = is_gone ? 0 : arena_.between(0, 20'000) + pull.range.size / kBytesPerUs;
  after(takes_us, "piece is sent", [this, pull, id, size = got.size] {
    --sending_;
    arena_.memory.read(store::kTransfer, id);
    arena_.memory.released(store::kTransfer, id);
    const auto& answer = std::get<Answer<Piece>>(pull.reply);
    pull.lies_within(size) ? answer(Piece{size})
                           : answer(make_error(Code::kInvalid, "it has fewer bytes"));
    arena_.objects.released(store::kTransfer, id);
    drive([&](store::StoreCore& core, Now now) { core.release(store::kTransfer, {id}, now, {}); });
  });
}

// ---- pages

void ArenaStore::reserve(int64_t up_to) {
  const bool is_short = arena_.pages_are_short && arena_.chance(0.3);
  after(
      arena_.between(10, arena_.chance(0.5) ? 1'000 : arena_.slowest_pages_us), "pages",
      [this, up_to, is_short] {
        const Status status =
            is_short ? Status(make_error(Code::kObjectStoreFull, "there are no pages")) : Status();
        drive([&](store::StoreCore& core, Now now) {
          core.on_reserved(is_short ? up_to / 2 / store::kPage * store::kPage : up_to, status, now);
        });
      });
}

// ---- copies of other nodes' values

void ArenaStore::fetch(const ObjectId& id, const std::vector<store::Source>&, bool) {
  const bool is_running =
      std::ranges::any_of(fetches_, [&](const auto& entry) { return entry.second.id == id; });
  if (is_running) {
    later_.insert(id);
  } else {
    begin_fetch(id);
  }
}

void ArenaStore::begin_fetch(const ObjectId& id) {
  const store::CallId fetch = ++last_fetch_;
  fetches_[fetch] = {id, {}};
  after(arena_.between(100, 20'000), "source answers", [this, fetch, id] {
    if (arena_.chance(arena_.failing_fetches)) return fetch_failed(fetch);
    const RemoteValue& value = arena_.remotes.at(id);
    drive([&](store::StoreCore& core, Now now) {
      core.create(store::kFetcher, fetch, {{id, value.size, value.owner}}, true, now);
    });
  });
}

void ArenaStore::fetch_created(store::CallId fetch, const Result<Offsets>& offsets) {
  if (offsets) {
    Fetch& running = fetches_.at(fetch);
    running.room = {offsets->at(0), arena_.remotes.at(running.id).size};
    arena_.memory.granted(store::kFetcher, running.room);
    after(arena_.between(0, 10'000), "copy is whole", [this, fetch] { fill(fetch); });
  } else {
    after(0, "copy has no room", [this, fetch] { fetch_failed(fetch); });
  }
}

void ArenaStore::fill(store::CallId fetch) {
  if (arena_.chance(arena_.failing_fetches)) return fetch_failed(fetch);
  const auto& [id, room] = fetches_.at(fetch);
  const store::SealItem item{id, room.offset, room.size, 0, arena_.remotes.at(id).owner};
  arena_.memory.wrote(store::kFetcher, room, id);
  arena_.memory.sealed(store::kFetcher, room, id);
  arena_.objects.sealed(store::kFetcher, WorkerId(), item);
  drive([&](store::StoreCore& core, Now now) { core.seal(store::kFetcher, {item}, {}, now); });
  after(arena_.between(0, 1) * arena_.between(0, 20'000), "copy is given back",
        [this, fetch, item] {
          arena_.memory.released(store::kFetcher, item.id);
          arena_.objects.released(store::kFetcher, item.id);
          drive([&](store::StoreCore& core, Now now) {
            core.release(store::kFetcher, {item.id}, now, {});
          });
          end_fetch(fetch);
        });
}

void ArenaStore::fetch_failed(store::CallId fetch) {
  const auto& [id, room] = fetches_.at(fetch);
  drive([&](store::StoreCore& core, Now now) {
    core.on_fetch_failed(id, make_error(Code::kObjectLost, "no node has it"), now);
  });
  if (room.size > 0) {
    arena_.memory.given_up(store::kFetcher, room);
    drive([&](store::StoreCore& core, Now now) { core.abort(store::kFetcher, {id}, now); });
  }
  end_fetch(fetch);
}

void ArenaStore::end_fetch(store::CallId fetch) {
  const ObjectId id = fetches_.extract(fetch).mapped().id;
  if (later_.erase(id)) begin_fetch(id);
}

// ---- the truth

int64_t ArenaStore::largest_hole() const {
  const store::Stats stats = core_.stats();
  if (!stats.no_pages.empty()) return 0;
  // Each of these has at most one piece of the arena, or one piece and a copy.
  auto pieces = stats.objects + std::ssize(arena_.remotes);
  for (const auto& [client, known] : clients_) pieces += known.extents;
  for (const auto& [call, asked] : asked_) pieces += std::ssize(asked.items);
  const int64_t hole = (stats.capacity - stats.allocated) / (pieces + 1);
  // Its first and its last page may belong to others, too.
  return (hole - store::kPage) / store::kPage * store::kPage;
}

void ArenaStore::check_waiters() const {
  for (const store::Waiter& waiter : core_.stats(true).waiters) {
    if (waiter.kind != store::Waiter::Kind::kArguments && waiter.bytes <= largest_hole())
      wrong(fmt::format("lets a client wait for {} bytes although there is room", waiter.bytes));
  }
}

std::string ArenaStore::left() const {
  const store::Stats stats = core_.stats();
  if (stats.objects == 0 && stats.allocated == 0) return {};
  std::string text =
      fmt::format("{} objects, {} bytes in use, {} bytes allocated, {} pinned, {} copies under way",
                  stats.objects, stats.used, stats.allocated, stats.pinned, fetches_.size());
  for (const store::Waiter& waiter : core_.stats(true).waiters)
    text += fmt::format("\n{} requests wait for {} bytes", waiter.count, waiter.bytes);
  return text;
}

}  // namespace rt::sim
