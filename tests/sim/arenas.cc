#include "tests/sim/arenas.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "tests/sim/arena_client.h"
#include "tests/sim/arena_worker.h"

namespace rt::sim {
namespace {

constexpr int64_t kArenaUs = 1'500'000;
// The arguments of tasks have one size, and the arena has room for so many of them.
constexpr int64_t kRoomBytes = 64 << 10, kRooms = 16;

// kSmall: small objects in extents. kCopies: copies of other nodes' values as well. kTight: large
// objects, and pages that come late or are missing. kTasks: tasks with arguments.
enum class Kind { kSmall, kCopies, kTight, kTasks };

NetworkOptions connection_options() {
  NetworkOptions options;
  // Connections overtake each other, so that a free comes before its object.
  options.slow_message = 0.1;
  options.slow_max_us = 20'000;
  return options;
}

int64_t capacity_of(Kind kind, uint64_t seed) {
  if (kind == Kind::kTasks) return kRooms * kRoomBytes;
  return static_cast<int64_t>(1 + seed / 4 % 3) << 20;
}

// Another store, which asks for objects until it ends.
class Puller final : public Process {
 public:
  Puller(Arena& arena, int host, ArenaStore& store, const ArenaSociety& society)
      : Process(arena.world.clock, arena.world.network, host), arena_(arena), society_(society) {
    network_.connect(
        *this, store.host(), "store connects", [&store]() -> Process* { return &store; },
        [this](Result<ChannelPtr> channel) {
          channel_ = *channel;
          pull();
        });
  }
  void stop() { end(arena_.chance(0.5) ? Exit::kOrderly : Exit::kAbrupt); }

 private:
  void pull() {
    after(arena_.between(1'000, 50'000), "pull", [this] {
      if (auto id = any()) {
        const store::Range range{0, arena_.between(0, 20'000)};
        channel_->call<ArenaStore::Piece>(
            "pull",
            [id, range](Channel& at, Channel::Answer<ArenaStore::Piece> answer) {
              arena_at(at).pull(at, *id, range, std::move(answer));
            },
            [](const Result<ArenaStore::Piece>&) {});
      }
      pull();
    });
  }
  std::optional<ObjectId> any() {
    // Often one that has just been stored, whose seal may still be on its way.
    const auto& stored = society_.stored;
    if (stored.empty()) return std::nullopt;
    const int64_t known = std::ssize(stored);
    const int64_t at = arena_.between(std::max<int64_t>(0, known - 5), known - 1);
    return stored[static_cast<size_t>(at)].first;
  }

  Arena& arena_;
  const ArenaSociety& society_;
  ChannelPtr channel_;
};

class Arenas {
 public:
  explicit Arenas(uint64_t seed)
      : kind_(static_cast<Kind>(seed % 4)),
        arena_(seed, capacity_of(kind_, seed), connection_options()) {
    world().clock.print_events(std::getenv("SIM_TRACE") != nullptr);
    world().settings.create_wait_ms = kind_ == Kind::kTasks ? 5'000 : 1'000;
    world().settings.seal_grace_ms = 200;
    arena_.failing_fetches = kind_ == Kind::kTasks ? 0 : 0.1;
    if (kind_ == Kind::kTight) arena_.slowest_pages_us = 200'000;
    arena_.pages_are_short = kind_ == Kind::kTight && arena_.chance(0.5);
    society_.small = kind_ == Kind::kSmall ? 0.9 : kind_ == Kind::kTight ? 0.1 : 0.5;
    society_.largest = kind_ == Kind::kTight ? 0.6 : 0.2;
    breaks_rules_ = kind_ != Kind::kTasks && seed % 3 == 0;
    store_ = world().adopt(std::make_unique<ArenaStore>(arena_, 1));
    make_remotes();
    if (kind_ == Kind::kTasks) {
      make_tasks();
      return;
    }
    for (int64_t i = arena_.between(2, 5); i > 0; --i) add_client();
    add_puller();
    plan();
  }

  std::string run() {
    bool is_over = false;
    world().clock.after(kArenaUs, "nothing more is done", 0, [&] { is_over = is_over_ = true; });
    run_until("all are answered, and give back what they hold", [&] {
      return is_over && std::ranges::all_of(workers_, &ArenaWorker::is_idle) &&
             std::ranges::all_of(society_.living,
                                 [](const auto& one) { return one.second->is_idle(); }) &&
             store_->is_quiet();
    });
    is_final_ = true;
    for (ArenaClient* client : clients_) client->stop(Process::Exit::kOrderly);
    for (ArenaWorker* worker : workers_) worker->stop(Process::Exit::kOrderly);
    for (auto& [id, value] : arena_.remotes) {
      value.freed = true;
      store_->free(id);
    }
    run_until("all room is back", [&] { return store_->left().empty(); });
    return fmt::format("seed {}: {} events, {} objects\n", world().seed, world().clock.events(),
                       society_.stored.size());
  }

 private:
  World& world() { return arena_.world; }

  void make_remotes() {
    if (kind_ == Kind::kSmall) return;
    const int64_t count = kind_ == Kind::kTasks ? 30 : kind_ == Kind::kCopies ? 12 : 3;
    for (int64_t i = 0; i < count; ++i) {
      const ObjectId id =
          make_object_id(make_task_id(1'000'000 + static_cast<uint64_t>(i), JobId()), 1);
      const int64_t size =
          kind_ == Kind::kTasks ? kRoomBytes : arena_.between(1, arena_.capacity / 6);
      arena_.remotes[id] = {size, WorkerId::random(world().rng)};
    }
  }

  // ---- clients

  void add_client() {
    auto* client = world().adopt(std::make_unique<ArenaClient>(arena_, 1, *store_, society_));
    clients_.push_back(client);
    client->on_end = [this, client] {
      society_.living.erase(client->worker());
      if (is_final_) return;
      // The node-manager may know before the last that the client said has arrived.
      world().clock.after(arena_.between(0, 1) * arena_.between(0, 50'000), "worker has died", 0,
                          [this, client] { store_->owners_gone({client->worker()}, {}); });
      if (!is_over_) add_client();
    };
  }

  void add_puller() {
    auto* puller = world().adopt(std::make_unique<Puller>(arena_, 2, *store_, society_));
    world().clock.after(arena_.between(10'000, 300'000), "puller ends", 0, [this, puller] {
      puller->stop();
      if (!is_over_) add_puller();
    });
  }

  void plan() {
    for (int64_t at_us = 0; at_us < kArenaUs; at_us += arena_.between(0, 4'000)) {
      world().clock.after(at_us, "act", 0, [this] {
        if (ArenaClient* client = any_client()) client->act();
      });
    }
    for (int64_t i = arena_.between(0, 12); i > 0; --i) {
      // Many end while the first pages are reserved.
      const int64_t last_us = arena_.chance(0.5) ? kArenaUs : kArenaUs / 10;
      world().clock.after(arena_.between(0, last_us), "client ends", 0, [this] {
        if (ArenaClient* client = any_client()) client->stop(Process::Exit::kOrderly);
      });
    }
    for (int64_t i = breaks_rules_ ? arena_.between(1, 6) : 0; i > 0; --i) {
      world().clock.after(arena_.between(0, kArenaUs), "client breaks a rule", 0, [this] {
        if (ArenaClient* client = any_client()) client->break_a_rule();
      });
    }
    for (auto& [id, value] : arena_.remotes) {
      if (arena_.chance(0.5)) continue;
      const bool owner_ends = arena_.chance(0.5);
      world().clock.after(arena_.between(0, kArenaUs), "owner frees", 0,
                          [this, &id, &value, owner_ends] {
                            value.freed = true;
                            world().clock.after(arena_.between(100, 5'000), "free", 0,
                                                [this, &id, &value, owner_ends] {
                                                  if (!owner_ends) return store_->free(id);
                                                  value.owner_is_gone = true;
                                                  store_->owners_gone({value.owner}, {});
                                                });
                          });
    }
  }

  ArenaClient* any_client() {
    if (society_.living.empty()) return nullptr;
    auto one = society_.living.begin();
    std::advance(one, world().rng.below(society_.living.size()));
    return one->second;
  }

  // ---- tasks

  ArenaWorker* add_worker(size_t ahead) {
    workers_.push_back(world().adopt(std::make_unique<ArenaWorker>(arena_, 1, *store_, ahead)));
    return workers_.back();
  }

  std::shared_ptr<ArenaTask> task_of(int64_t arguments) {
    auto task = std::make_shared<ArenaTask>();
    std::set<ObjectId> chosen;
    while (std::ssize(chosen) < arguments) {
      auto value = arena_.remotes.begin();
      std::advance(value, world().rng.below(arena_.remotes.size()));
      chosen.insert(value->first);
    }
    task->arguments.assign(chosen.begin(), chosen.end());
    task->runs_us = arena_.between(1'000, 20'000);
    return task;
  }

  // The tasks that wait for helpers never have so much that there is no room for those.
  void make_tasks() {
    constexpr int64_t kParents = 3, kOfParent = 4, kOfHelper = 2, kTasks = 24;
    static_assert(kParents * kOfParent + kOfHelper <= kRooms);
    ArenaWorker* helper = add_worker(1);
    for (int64_t i = 0; i < kParents; ++i) add_worker(1);
    for (int64_t i = 0; i < 2; ++i) add_worker(2);
    for (int64_t i = 0; i < kTasks; ++i) {
      const auto worker = static_cast<size_t>(arena_.between(1, std::ssize(workers_) - 1));
      const bool is_parent = static_cast<int64_t>(worker) <= kParents;
      auto task = task_of(arena_.between(1, is_parent ? kOfParent : kRooms));
      if (is_parent && arena_.chance(0.7)) {
        task->helper = task_of(arena_.between(1, kOfHelper));
        task->helped_by = helper;
      }
      world().clock.after(arena_.between(100'000, 400'000), "task arrives", 0,
                          [to = workers_[worker], task] { to->run(task, [] {}); });
    }
  }

  void run_until(const char* what, const std::function<bool()>& done) {
    const int64_t limit_us = world().clock.now_us() + 30'000'000;
    while (!done()) {
      if (world().clock.step() && world().clock.now_us() < limit_us) continue;
      std::string waiting = store_->left();
      for (const auto& [id, client] : society_.living)
        if (!client->is_idle()) waiting += "\n" + client->describe();
      for (const ArenaWorker* worker : workers_)
        if (!worker->is_idle()) waiting += "\n" + worker->describe();
      violation(fmt::format("seed {}: {}: not within 30 s: {}", world().seed, what, waiting));
    }
  }

  const Kind kind_;
  Arena arena_;
  ArenaSociety society_;
  ArenaStore* store_ = nullptr;
  bool breaks_rules_ = false, is_over_ = false, is_final_ = false;
  std::vector<ArenaClient*> clients_;
  std::vector<ArenaWorker*> workers_;
};

}  // namespace

std::string run_arenas(uint64_t seed) { return Arenas(seed).run(); }

}  // namespace rt::sim
