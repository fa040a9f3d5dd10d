#include "tests/sim/copies.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tests/sim/sim_store.h"
#include "tests/sim/store_user.h"

namespace rt::sim {
namespace {

constexpr int64_t kBusyUs = 2'000'000;
constexpr int64_t kChunk = 100'000, kLargest = 10 * kChunk;
constexpr size_t kMostAtOnce = 3;  // values that a process wants or holds

enum class Fault { kNone, kEnds, kBreaks, kHangs, kGone };

// A value, and the stores that have it from the beginning.
struct Copied {
  ObjectId id;
  int64_t size = 0;
  std::vector<NodeId> homes;
  bool differs = false;  // the homes have copies of different sizes
};

struct Copies {
  explicit Copies(uint64_t seed) : world(seed, network_options()) {
    const Fault faults[] = {Fault::kNone, Fault::kEnds, Fault::kBreaks, Fault::kHangs,
                            Fault::kGone};
    fault = faults[seed % std::size(faults)];
    world.clock.print_events(std::getenv("SIM_TRACE") != nullptr);
  }
  static NetworkOptions network_options() {
    NetworkOptions options;
    options.connect_timeout_us = 200'000;
    return options;
  }
  int64_t between(int64_t low, int64_t high) { return world.between(low, high); }

  World world;
  Fault fault = Fault::kNone;
  std::vector<Copied> values;
  int64_t found = 0, lost = 0;
};

// Gets values from the store of its node and gives them back a little later.
class Reader final : public StoreUser {
 public:
  Reader(Copies& all, int host, const NodeId& node, SimStore& store)
      : StoreUser(all.world.clock, all.world.network, host), all_(all), node_(node) {
    network_.connect(
        *this, host, "reader connects", [&store]() -> Process* { return &store; },
        [this](Result<ChannelPtr> channel) {
          if (!channel) return end(Exit::kOrderly);
          channel_ = *channel;
          channel_->on_closed = [this] { end(Exit::kOrderly); };
        });
  }

  void want(const Copied& value) {
    if (!alive() || !channel_ || wanted_.size() + held_ >= kMostAtOnce) return;
    const uint64_t call = ++last_call_;
    const store::Ticket ticket = all_.world.rng.chance(0.5) ? call : 0;
    auto sources = sources_of(value);
    wanted_[call] = {&value, sources, ticket};
    channel_->send("get", [call, id = value.id, sources, ticket](Channel& at) {
      store_at(at).get(at, call, id, sources, ticket);
    });
  }

  void on_arguments(uint64_t call, bool whole) override {
    const Wanted wanted = wanted_.extract(call).mapped();
    const Copied& value = *wanted.value;
    if (!whole) {
      all_.lost++;
      if (must_come(wanted))
        violation(fmt::format("seed {}: value {} is lost for reader #{} although a source has it",
                              all_.world.seed, value.id.hex(), number()));
      return give_back(wanted, false);
    }
    all_.found++;
    held_++;
    after(all_.between(0, 20'000), "value is not needed any more", [this, wanted] {
      held_--;
      give_back(wanted, true);
    });
  }
  void on_room() override {}

  bool is_idle() const { return !alive() || (wanted_.empty() && held_ == 0); }
  std::string describe() const {
    std::string text;
    for (const auto& [call, wanted] : wanted_)
      text += fmt::format(" {} of {} bytes", wanted.value->id.hex(), wanted.value->size);
    return fmt::format("reader #{} waits for{}", number(), text);
  }

 private:
  struct Wanted {
    const Copied* value = nullptr;
    std::vector<store::Source> sources;
    store::Ticket ticket = 0;
  };

  // Homes, and stores that may have a copy, in any order. No two stores wait for each other's
  // copies, which would end only after object_fetch_timeout_ms. Where homes end, all of them are
  // named: who asks for a value that is being fetched shares the sources of that fetch.
  std::vector<store::Source> sources_of(const Copied& value) {
    Rng& rng = all_.world.rng;
    std::vector<NodeId> nodes{value.homes[rng.below(value.homes.size())]};
    for (const auto& [node, store] : all_.world.stores) {
      const bool is_home = std::ranges::count(value.homes, node) > 0;
      const bool is_named = is_home && all_.fault == Fault::kEnds;
      if (node != nodes[0] && (is_named || ((is_home || node < node_) && rng.chance(0.4))))
        nodes.push_back(node);
    }
    std::vector<store::Source> sources;
    while (!nodes.empty()) {
      auto next = nodes.begin() + static_cast<std::ptrdiff_t>(rng.below(nodes.size()));
      // The size may be unknown, or that of another attempt of the task.
      const int64_t size = rng.chance(0.7) ? value.size : all_.between(0, 1) * (value.size + 5000);
      sources.push_back({*next, "", 0, size});
      nodes.erase(next);
    }
    return sources;
  }

  // Whether the value has to be found at one of its sources.
  bool must_come(const Wanted& wanted) const {
    if (all_.fault == Fault::kNone || all_.fault == Fault::kHangs) return true;
    if (all_.fault != Fault::kEnds || wanted.value->differs) return false;
    return std::ranges::any_of(wanted.sources, [&](const store::Source& source) {
      return std::ranges::count(wanted.value->homes, source.node) > 0 &&
             all_.world.stores.at(source.node)->alive();
    });
  }

  void give_back(const Wanted& wanted, bool got) {
    const ObjectId id = wanted.value->id;
    if (wanted.ticket > 0) {
      channel_->send("end task", [id, ticket = wanted.ticket, got](Channel& at) {
        store_at(at).end_task(at, ticket, {{id, 0, NodeId()}}, got);
      });
    } else if (got) {
      channel_->send("release", [id](Channel& at) { store_at(at).release(at, id); });
    }
  }

  Copies& all_;
  const NodeId node_;
  ChannelPtr channel_;
  std::map<uint64_t, Wanted> wanted_;  // by call
  size_t held_ = 0;
  uint64_t last_call_ = 0;
};

// Builds the stores and runs the program.
class Program {
 public:
  explicit Program(uint64_t seed) : all_(seed) {
    Settings& settings = world().settings;
    settings.transfer_chunk_bytes = kChunk;
    settings.transfer_chunks_in_flight = all_.between(1, 4);
    settings.fetch_max_bytes = all_.between(1, 20) * kChunk;
    settings.object_fetch_timeout_ms = settings.node_timeout_ms = 3000;
    settings.seal_grace_ms = 20;
    // There is room for all, but some of it may be held by a fetch from a host that is gone.
    settings.create_wait_ms = 120'000;
    make_values();
    make_stores();
    plan();
    plan_faults();
  }

  std::string run() {
    bool over = false;
    world().clock.after(2 * kBusyUs, "nothing more is wanted", 0, [&over] { over = true; });
    run_until("values come, or are lost", [&] {
      return over &&
             std::ranges::all_of(readers_, [](Reader* reader) { return reader->is_idle(); });
    });
    world().network.heal();
    run_until("stores come to rest", [this] {
      return std::ranges::all_of(world().stores, [](const auto& store) {
        return !store.second->alive() || store.second->at_rest();
      });
    });
    return fmt::format("seed {}: {} events, {} values came, {} were lost\n", world().seed,
                       world().clock.events(), all_.found, all_.lost);
  }

 private:
  World& world() { return all_.world; }

  void make_values() {
    const int64_t stores = all_.between(2, 6);
    for (int64_t i = 0; i < stores; ++i) nodes_.push_back(NodeId::random(world().rng));
    for (int64_t i = all_.between(2, 12); i > 0; --i) {
      Copied& value = all_.values.emplace_back();
      value.id = make_object_id(make_task_id(static_cast<uint64_t>(i), JobId()), 1);
      value.size = world().rng.chance(0.1) ? 0 : all_.between(1, kLargest - kChunk);
      std::set<NodeId> homes;
      for (int64_t home = all_.between(1, 3); home > 0; --home)
        homes.insert(nodes_[world().rng.below(nodes_.size())]);
      value.homes.assign(homes.begin(), homes.end());
      value.differs = homes.size() > 1 && world().rng.chance(0.3);
    }
  }

  void make_stores() {
    int host = 0;
    for (const NodeId& node : nodes_) {
      const int64_t for_good = std::ranges::count_if(
          all_.values, [&](const Copied& value) { return std::ranges::count(value.homes, node); });
      // Values that are held or sent, and one for each that may be on its way.
      const int64_t capacity = (for_good + 3 * static_cast<int64_t>(kMostAtOnce)) * 2 * kLargest;
      SimStore* store = world().adopt(std::make_unique<SimStore>(world(), ++host, node, capacity));
      for (const Copied& value : all_.values) {
        const auto home = std::ranges::find(value.homes, node);
        if (home == value.homes.end()) continue;
        const bool other = value.differs && home != value.homes.begin();
        store->put(value.id, value.size + (other ? all_.between(1, kChunk) : 0));
      }
      readers_.push_back(world().adopt(std::make_unique<Reader>(all_, host, node, *store)));
    }
  }

  void plan() {
    for (Reader* reader : readers_) {
      for (int64_t i = all_.between(5, 40); i > 0; --i)
        want(*reader, any_value(), all_.between(10'000, kBusyUs));
    }
    // Now and then all want the same value, so that stores send each other what they receive.
    for (int64_t i = all_.between(2, 10); i > 0; --i) {
      const Copied& value = any_value();
      const int64_t at_us = all_.between(10'000, kBusyUs);
      for (Reader* reader : readers_) want(*reader, value, at_us + all_.between(0, 3'000));
    }
  }

  const Copied& any_value() { return all_.values[world().rng.below(all_.values.size())]; }
  void want(Reader& reader, const Copied& value, int64_t after_us) {
    world().clock.after(after_us, "want", 0, [&reader, &value] { reader.want(value); });
  }

  void plan_faults() {
    auto at_some_time = [this](const char* what, std::function<void()> run) {
      world().clock.after(all_.between(10'000, kBusyUs), what, 0, std::move(run));
    };
    switch (all_.fault) {
      case Fault::kNone: break;
      case Fault::kEnds:
        for (size_t i = 1; i < nodes_.size(); ++i) {
          if (world().rng.chance(0.5)) continue;
          at_some_time("a store ends", [this, i] {
            using Exit = Process::Exit;
            world().stores.at(nodes_[i])->stop(world().rng.chance(0.5) ? Exit::kOrderly
                                                                       : Exit::kAbrupt);
          });
        }
        break;
      case Fault::kBreaks:
        for (int64_t i = all_.between(1, 20); i > 0; --i)
          at_some_time("break", [this] { world().network.break_random(); });
        break;
      case Fault::kHangs:
        // Shorter than the patience of those who wait.
        for (int64_t i = 0; i < 3; ++i) {
          const int64_t from_us = i * kBusyUs / 3;
          world().clock.after(from_us + all_.between(10'000, 100'000), "hang", 0,
                              [this] { cut(); });
          world().clock.after(from_us + all_.between(110'000, 600'000), "go on", 0,
                              [this] { world().network.heal(); });
        }
        break;
      case Fault::kGone: at_some_time("a host is gone", [this] { cut(); }); break;
    }
  }

  void cut() {
    world().network.partition({static_cast<int>(all_.between(1, std::ssize(nodes_)))}, 0);
  }

  void run_until(const char* what, const std::function<bool()>& done) {
    const int64_t limit_us = world().clock.now_us() + 300'000'000;
    while (!done()) {
      if (world().clock.step() && world().clock.now_us() < limit_us) continue;
      std::string waiting;
      for (const Reader* reader : readers_) {
        if (!reader->is_idle()) waiting += reader->describe() + "\n";
      }
      violation(fmt::format("seed {}: {}: not within 300 s\n{}", world().seed, what, waiting));
    }
  }

  Copies all_;
  std::vector<NodeId> nodes_;
  std::vector<Reader*> readers_;
};

}  // namespace

std::string run_copies(uint64_t seed) { return Program(seed).run(); }

}  // namespace rt::sim
