#include "tests/sim/sim_store.h"

#include <fmt/core.h>

#include <algorithm>

#include "tests/sim/sim_worker.h"
#include "tests/sim/store_user.h"

namespace rt::sim {
namespace {

// Holds what was put().
constexpr store::ClientId kHolder = store::kFirstClient;

store::StoreCore::Options store_options(const World& world, const NodeId& node, int64_t capacity) {
  store::StoreCore::Options options;
  options.capacity = capacity;
  options.node = node;
  options.create_wait_us = world.settings.create_wait_ms * 1000;
  options.seal_grace_us = world.settings.seal_grace_ms * 1000;
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
      node_(node),
      core_(store_options(world, node, capacity), *this),
      fetcher_(world, *this, capacity) {
  world_.stores[node] = this;
  RT_CHECK(core_.attach(kHolder, WorkerId(), JobId(), 0));
}

store::ClientId SimStore::client_of(const Channel& channel) {
  return kHolder + channel.connection();
}

void SimStore::accepted(const ChannelPtr& channel) {
  const store::ClientId client = client_of(*channel);
  const auto* worker = dynamic_cast<const SimWorker*>(channel->peer());
  clients_[client] = {channel, worker ? worker->id() : WorkerId()};
  RT_CHECK(core_.attach(client, clients_[client].worker, JobId(), 0));
  channel->on_closed = [this, client] {
    clients_.erase(client);
    held_.take_all_of(client);
    drive([&](store::StoreCore& core, Now now) { core.client_gone(client, now); });
  };
}

void SimStore::arm_tick() {
  ring_by(tick_alarm_, core_.next_tick_us(), "store tick",
          [this] { drive([](store::StoreCore& core, Now now) { core.tick(now); }); });
}

bool SimStore::at_rest() const {
  const store::Stats stats = core_.stats();
  return stats.pinned == put_bytes_ && held_.is_empty() && fetcher_.at_rest() &&
         std::ranges::all_of(stats.holders, [](auto& holder) { return holder.worker.is_nil(); });
}

void SimStore::owners_gone(const proto::OwnersGone& gone) {
  store::Ended ended;
  for (const std::string& id : gone.worker_ids())
    ended.workers.push_back(WorkerId::from_binary(id));
  for (const std::string& id : gone.job_ids()) ended.jobs.push_back(JobId::from_binary(id));
  for (const std::string& id : gone.node_ids()) ended.nodes.push_back(NodeId::from_binary(id));
  fetcher_.nodes_gone(ended.nodes);
  drive([&](store::StoreCore& core, Now now) { core.free_owned_by(ended, now); });
}

// ---- values

void SimStore::put(const ObjectId& id, int64_t size) {
  put_bytes_ += size;
  put_for(WorkerId(), id, size);
}

void SimStore::put_for(const WorkerId& owner, const ObjectId& id, int64_t size) {
  const store::CreateItem item{id, size, owner};
  const store::CallId call = held_.add({kHolder, item});
  drive([&](store::StoreCore& core, Now now) { core.create(kHolder, call, {item}, false, now); });
}

void SimStore::create(Channel& from, const StoredValue& value) {
  const store::ClientId client = client_of(from);
  const store::CreateItem item{value.id, value.size, clients_.at(client).worker};
  const store::CallId call = held_.add({client, item});
  drive([&](store::StoreCore& core, Now now) { core.create(client, call, {item}, true, now); });
}

void SimStore::reply_create(store::ClientId client, store::CallId call,
                            Result<std::vector<int64_t>> offsets) {
  if (client == store::kFetcher) {
    Result<int64_t> offset = int64_t{0};
    if (offsets) {
      offset = offsets->at(0);
    } else {
      offset = offsets.error();
    }
    return fetcher_.created(call, offset);
  }
  const store::CreateItem item = std::get<store::CreateItem>(held_.take(call)->reply);
  if (!offsets)
    violation(fmt::format("store #{} has no room: {}", number(), offsets.error().message));
  after(1, "value is whole", [this, client, item, offset = offsets->at(0)] {
    if (client > kHolder && !clients_.contains(client)) return;
    seal(client, item, offset);
  });
}

void SimStore::seal(store::ClientId client, const store::CreateItem& item, int64_t offset) {
  drive([&](store::StoreCore& core, Now now) {
    core.seal(client, {{item.id, offset, item.size, 0, item.owner}}, {}, now);
    if (client == kHolder && !item.owner.is_nil()) core.release(client, {item.id}, now, {item.id});
  });
  if (client > kHolder)
    clients_.at(client).channel->send("room", [](Channel& at) { store_user_at(at).on_room(); });
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

void SimStore::fetch(const ObjectId& id, const std::vector<store::Source>& sources, bool first) {
  fetcher_.start(id, sources, first);
}

void SimStore::disconnect(store::ClientId client, Error why) {
  violation(fmt::format("store #{} disconnects its client {}: {}", number(), client, why.message));
}

// ---- arguments

std::vector<store::Source> SimStore::sources_of(const StoredValue& value) {
  std::vector<store::Source> sources;
  // Two stores never wait for each other's copies: the first in this order asks only the home.
  for (const auto& [node, store] : world_.stores) {
    if (node == node_) break;
    if (node != value.home && world_.rng.chance(0.25)) sources.push_back({node, "", 0, value.size});
  }
  sources.push_back({value.home, "", 0, value.size});
  return sources;
}

void SimStore::get_arguments(Channel& from, store::Ticket ticket,
                             const std::vector<StoredValue>& values) {
  std::vector<store::WantedItem> wanted;
  for (const StoredValue& value : values) wanted.push_back({value.id, sources_of(value)});
  drive([&](store::StoreCore& core, Now now) {
    core.get(client_of(from), ticket, std::move(wanted),
             world_.settings.object_fetch_timeout_ms * 1000, now, ticket);
  });
}

void SimStore::reply_get(store::ClientId client, store::CallId call,
                         std::vector<store::GetAnswer> answers) {
  if (client == store::kTransfer) return answer_pull(call, answers.at(0));
  auto to = clients_.find(client);
  if (to == clients_.end()) return;
  for (const store::GetAnswer& answer : answers) {
    // A request that was given up is answered as well.
    const std::string& why = answer.error.message;
    if (!answer.found && answer.error.code == Code::kObjectStoreFull &&
        !world_.owners_seek_arguments)
      violation(fmt::format("store #{} refuses the arguments {}: {}", number(), call, why));
  }
  const bool whole = std::all_of(answers.begin(), answers.end(),
                                 [](const store::GetAnswer& answer) { return answer.found; });
  to->second.channel->send(
      "arguments", [call, whole](Channel& at) { store_user_at(at).on_arguments(call, whole); });
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

void SimStore::get(Channel& from, store::CallId call, const ObjectId& id,
                   std::vector<store::Source> sources, store::Ticket ticket) {
  drive([&](store::StoreCore& core, Now now) {
    core.get(client_of(from), call, {{id, std::move(sources)}}, -1, now, ticket);
  });
}

void SimStore::release(Channel& from, const ObjectId& id) {
  drive([&](store::StoreCore& core, Now now) { core.release(client_of(from), {id}, now, {id}); });
}

// ---- other stores

void SimStore::serve_pull(Channel& from, const ObjectId& id, store::Range range,
                          Channel::Answer<PullAnswer> answer) {
  const store::CallId call = held_.add({client_of(from), std::move(answer), id, range});
  if (fetcher_.is_receiving(id) && !core_.contains(id)) return fetcher_.read(call, id, range);
  store::Source here;
  here.node = node_;
  drive([&](store::StoreCore& core, Now now) {
    core.get(store::kTransfer, call, {{id, {here}}}, world_.settings.seal_grace_ms * 1000, now, 0);
  });
}

void SimStore::answer_pull(store::CallId call, const store::GetAnswer& got) {
  if (!got.found) return refuse_pull(call, make_error(Code::kNotFound, got.error.message));
  auto pull = held_.take(call);
  if (!pull) return;
  after(pull->range.size / kTransferBytesPerUs, "bytes are sent",
        [this, pull = std::move(*pull), size = got.size] {
          const auto& answer = std::get<Channel::Answer<PullAnswer>>(pull.reply);
          if (pull.lies_within(size)) {
            answer(PullAnswer{size});
          } else {
            answer(make_error(Code::kInvalid, "it has less bytes"));
          }
          drive([&](store::StoreCore& core, Now now) {
            core.release(store::kTransfer, {pull.pulled}, now, {});
          });
        });
}

void SimStore::send_piece(store::CallId reader, const store::FetchedPiece& piece) {
  after(piece.range.size / kTransferBytesPerUs, "piece is sent",
        [this, pull = held_.take(reader), piece] {
          if (pull)
            std::get<Channel::Answer<PullAnswer>>(pull->reply)(PullAnswer{piece.total_size});
          fetcher_.piece_sent(piece.fetch);
        });
}

void SimStore::refuse_pull(store::CallId reader, const Error& why) {
  if (auto pull = held_.take(reader)) std::get<Channel::Answer<PullAnswer>>(pull->reply)(why);
}

}  // namespace rt::sim
