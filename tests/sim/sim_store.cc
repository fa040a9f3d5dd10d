#include "tests/sim/sim_store.h"

#include <fmt/core.h>

#include <algorithm>

#include "tests/sim/sim_worker.h"

namespace rt::sim {
namespace {

// Holds what was put().
constexpr store::ClientId kHolder = store::kFirstClient;

store::StoreCore::Options store_options(const World& world, const NodeId& node, int64_t capacity) {
  store::StoreCore::Options options;
  options.capacity = capacity;
  options.node = node;
  options.create_wait_us = world.settings.create_wait_ms * 1000;
  return options;
}

std::vector<ObjectId> ids_of(const std::vector<StoredValue>& values) {
  std::vector<ObjectId> ids;
  for (const StoredValue& value : values) ids.push_back(value.id);
  return ids;
}

}  // namespace

SimStore::SimStore(World& world, int host, const NodeId& node, int64_t capacity)
    : Process(world.clock, world.network, host),
      world_(world),
      core_(store_options(world, node, capacity), *this) {
  RT_CHECK(core_.attach(kHolder, WorkerId(), JobId(), 0));
}

store::ClientId SimStore::client_of(const Channel& channel) {
  return kHolder + channel.connection();
}

void SimStore::accepted(const ChannelPtr& channel) {
  const store::ClientId client = client_of(*channel);
  clients_[client] = channel;
  RT_CHECK(core_.attach(client, WorkerId(), JobId(), 0));
  channel->on_closed = [this, client] {
    clients_.erase(client);
    drive([&](store::StoreCore& core, Now now) { core.client_gone(client, now); });
  };
}

void SimStore::arm_tick() {
  const int64_t next_us = core_.next_tick_us();
  if (next_us < 0 || tick_timer_) return;
  tick_timer_ = after(std::max<int64_t>(1, next_us - clock_.now_us()), "store tick", [this] {
    tick_timer_ = 0;
    drive([](store::StoreCore& core, Now now) { core.tick(now); });
  });
}

bool SimStore::at_rest() const { return core_.stats().pinned == put_bytes_ && creating_.empty(); }

// ---- values

void SimStore::put(const ObjectId& id, int64_t size) {
  put_bytes_ += size;
  creating_[++last_call_] = {id, size, WorkerId()};
  drive([&](store::StoreCore& core, Now now) {
    core.create(kHolder, last_call_, {{id, size, WorkerId()}}, false, now);
  });
}

void SimStore::create(Channel& from, const StoredValue& value) {
  creating_[++last_call_] = {value.id, value.size, WorkerId()};
  drive([&](store::StoreCore& core, Now now) {
    core.create(client_of(from), last_call_, {{value.id, value.size, WorkerId()}}, true, now);
  });
}

void SimStore::reply_create(store::ClientId client, store::CallId call,
                            Result<std::vector<int64_t>> offsets) {
  const store::CreateItem item = creating_.extract(call).mapped();
  if (!offsets)
    violation(fmt::format("store #{} has no room: {}", number(), offsets.error().message));
  const int64_t takes_us = client == store::kFetcher ? item.size / kTransferBytesPerUs : 1;
  after(takes_us, "value is whole", [this, client, item, offset = offsets->at(0)] {
    if (client > kHolder && !clients_.contains(client)) return;
    seal(client, item, offset);
  });
}

void SimStore::seal(store::ClientId client, const store::CreateItem& item, int64_t offset) {
  drive([&](store::StoreCore& core, Now now) {
    core.seal(client, {{item.id, offset, item.size, 0, item.owner}}, {}, now);
    if (client == store::kFetcher) core.release(client, {item.id}, now, {});
  });
  if (client > kHolder)
    clients_.at(client)->send("room", [](Channel& at) { worker_at(at).on_room(); });
}

void SimStore::free(Channel& from, const ObjectId& id) {
  drive([&](store::StoreCore& core, Now now) {
    core.release(client_of(from), {id}, now, {});
    core.free({id}, now);
  });
}

void SimStore::reserve(int64_t up_to) {
  after(world_.between(10, 1000), "pages", [this, up_to] {
    drive([&](store::StoreCore& core, Now now) { core.on_reserved(up_to, Status(), now); });
  });
}

void SimStore::fetch(const ObjectId& id, const std::vector<store::Source>& sources, bool) {
  after(world_.between(100, 2000), "fetch begins", [this, id, size = sources.at(0).size] {
    creating_[++last_call_] = {id, size, WorkerId()};
    drive([&](store::StoreCore& core, Now now) {
      core.create(store::kFetcher, last_call_, {{id, size, WorkerId()}}, true, now);
    });
  });
}

void SimStore::disconnect(store::ClientId client, Error why) {
  violation(fmt::format("store #{} disconnects its client {}: {}", number(), client, why.message));
}

// ---- arguments

void SimStore::get_arguments(Channel& from, store::Ticket ticket,
                             const std::vector<StoredValue>& values) {
  std::vector<store::WantedItem> wanted;
  for (const StoredValue& value : values)
    wanted.push_back({value.id, {{value.home, "", 0, value.size}}});
  drive([&](store::StoreCore& core, Now now) {
    core.get(client_of(from), ticket, std::move(wanted),
             world_.settings.object_fetch_timeout_ms * 1000, now, ticket);
  });
}

void SimStore::reply_get(store::ClientId client, store::CallId call,
                         std::vector<store::GetAnswer> answers) {
  auto to = clients_.find(client);
  if (to == clients_.end()) return;
  for (const store::GetAnswer& answer : answers) {
    // A request that was given up is answered as well.
    const std::string& why = answer.error.message;
    if (!answer.found && answer.error.code == Code::kObjectStoreFull)
      violation(fmt::format("store #{} refuses the arguments {}: {}", number(), call, why));
  }
  const bool whole = std::all_of(answers.begin(), answers.end(),
                                 [](const store::GetAnswer& answer) { return answer.found; });
  to->second->send("arguments",
                   [call, whole](Channel& at) { worker_at(at).on_arguments(call, whole); });
}

void SimStore::end_task(Channel& from, store::Ticket ticket, const std::vector<StoredValue>& values,
                        bool got) {
  drive([&](store::StoreCore& core, Now now) {
    if (got) {
      core.release(client_of(from), ids_of(values), now, ids_of(values));
    }
    core.update_tasks(client_of(from), {ticket}, {}, now);
  });
}

void SimStore::set_blocked(Channel& from, bool blocked) {
  drive([&](store::StoreCore& core, Now now) {
    core.update_tasks(client_of(from), {}, blocked, now);
  });
}

}  // namespace rt::sim
