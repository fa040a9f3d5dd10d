#include "tests/sim/arena_user.h"

#include <utility>

namespace rt::sim {

ArenaUser::ArenaUser(Arena& arena, int host, ArenaStore& store)
    : Process(arena.world.clock, arena.world.network, host),
      arena_(arena),
      worker_(WorkerId::random(arena.world.rng)) {
  network_.connect(
      *this, store.host(), "user connects", [&store]() -> Process* { return &store; },
      [this](Result<ChannelPtr> channel) {
        channel_ = *channel;
        channel_->on_closed = [this] { stop(Exit::kOrderly); };
        ready();
      });
}

void ArenaUser::stop(Exit how) {
  if (!alive()) return;
  if (channel_) arena_.memory.ended(client());
  end(how);
  if (on_end) on_end();
}

void ArenaUser::create(std::vector<store::CreateItem> items, bool wait,
                       Done<Result<std::vector<int64_t>>> done) {
  using Offsets = std::vector<int64_t>;
  channel_->call<Offsets>(
      "create",
      [items = std::move(items), wait](Channel& at, Channel::Answer<Offsets> answer) {
        arena_at(at).create(at, items, wait, std::move(answer));
      },
      std::move(done));
}

void ArenaUser::lease(int64_t size, Done<Result<store::LeasedExtent>> done) {
  channel_->call<store::LeasedExtent>(
      "lease",
      [size](Channel& at, Channel::Answer<store::LeasedExtent> answer) {
        arena_at(at).lease(at, size, std::move(answer));
      },
      std::move(done));
}

void ArenaUser::seal(const store::SealItem& item,
                     const std::vector<store::LeasedExtent>& finished) {
  arena_.memory.sealed(client(), {item.offset, item.size}, item.id);
  std::vector<uint64_t> ids;
  for (const store::LeasedExtent& extent : finished) {
    arena_.memory.given_up(client(), extent.range);
    ids.push_back(extent.id);
  }
  channel_->send("seal", [item, ids](Channel& at) { arena_at(at).seal(at, {item}, ids); });
}

void ArenaUser::abort(const ObjectId& id, store::Range range) {
  arena_.memory.given_up(client(), range);
  channel_->send("abort", [id](Channel& at) { arena_at(at).abort(at, id); });
}

void ArenaUser::get(std::vector<store::WantedItem> items, int64_t timeout_us, store::Ticket ticket,
                    Done<std::vector<store::GetAnswer>> done) {
  using Answers = std::vector<store::GetAnswer>;
  channel_->call<Answers>(
      "get",
      [items = std::move(items), timeout_us, ticket](Channel& at, Channel::Answer<Answers> answer) {
        arena_at(at).get(at, items, timeout_us, ticket, std::move(answer));
      },
      [done = std::move(done)](Result<Answers> answers) {
        if (answers) done(*answers);
      });
}

void ArenaUser::release(const std::vector<ObjectId>& ids, const std::vector<ObjectId>& told) {
  for (const ObjectId& id : ids) {
    arena_.memory.read(client(), id);
    arena_.memory.released(client(), id);
  }
  channel_->send("release", [ids, told](Channel& at) { arena_at(at).release(at, ids, told); });
}

void ArenaUser::free(const ObjectId& id) {
  channel_->send("free", [id](Channel& at) { arena_at(at).free(id); });
}

void ArenaUser::update_tasks(std::vector<store::Ticket> ended, std::optional<bool> blocked) {
  channel_->send("update tasks", [ended = std::move(ended), blocked](Channel& at) {
    arena_at(at).update_tasks(at, ended, blocked);
  });
}

void ArenaUser::break_rules(const char* what,
                            std::function<void(store::StoreCore&, store::ClientId, Now)> event) {
  breaks_rules_ = true;
  arena_.memory.ended(client());
  channel_->send("break the rules", [what, event = std::move(event)](Channel& at) {
    arena_at(at).break_rules(at, what, event);
  });
}

}  // namespace rt::sim
