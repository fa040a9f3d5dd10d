#include "tests/sim/streams.h"

#include <fmt/core.h>

#include <algorithm>

#include "tests/sim/world.h"
#include "worker/core/call_groups.h"
#include "worker/core/generator_stream.h"

namespace rt::sim {
namespace {

using worker::GeneratorStream, worker::Ref;

// Longer than a generator may wait without having heard of what was taken.
constexpr int64_t kRestUs = 300'000;

struct StreamPlan {
  std::string group;
  uint32_t items = 0;
  int64_t limit = 0;  // how many items may be untaken; 0: any number
  bool fails = false;
  int64_t yield_us = 0, take_us = 0;
  int64_t rest_after = -1;    // the consumer rests for a while after so many items; -1: never
  int64_t drop_after = -1;    // the consumer goes after so many items; -1: at the end
  int64_t cancel_after = -1;  // the user cancels the task after so many items; -1: never
};

// One attempt to run a call.
struct StreamCall {
  uint32_t seq = 0;
  uint64_t order = 0;
  StreamPlan plan;
  uint32_t items_known = 0;
};

class StreamOwner;

// The groups of the actor start calls, each of which yields its items and waits for room.
class StreamActor final : public Process {
 public:
  StreamActor(World& world, int host, const std::map<std::string, int>& limits)
      : Process(world.clock, world.network, host), limits_(limits), random_(world.rng) {
    std::map<std::string, int> named = limits;
    named.erase("");
    groups_.configure(limits.at(""), named);
  }

  void accepted(const ChannelPtr& channel) override {
    channels_[channel->connection()] = channel;
    channel->on_closed = [this, id = channel->connection()] { caller_gone(id); };
  }
  void call(Channel& from, const StreamCall& call) {
    const int group = groups_.find(call.plan.group);
    if (group < 0) violation("a call names a group that its actor has not");
    groups_.add(group, Waiting{channels_.at(from.connection()), call});
    start();
  }
  void on_taken(Channel& from, uint32_t seq, uint32_t taken) {
    told_[{from.connection(), seq}].taken = taken;
    go_on({from.connection(), seq});
  }
  void cancel(Channel& from, uint32_t seq) {
    told_[{from.connection(), seq}].cancelled = true;
    go_on({from.connection(), seq});
  }
  void set_owner(const StreamOwner& owner) { owner_ = &owner; }
  // It breaks the protocol so often.
  void misbehave(int64_t times) { mistakes_left_ = times; }
  bool misbehaves() const { return mistakes_left_ >= 0; }
  bool idle() const { return running_.empty() && groups_.startable() == 0; }

 private:
  using Key = std::pair<uint64_t, uint32_t>;  // connection and sequence number
  struct Waiting {
    ChannelPtr from;
    StreamCall call;
  };
  struct Running {
    Waiting started;
    int group = 0;
    uint32_t yielded = 0;
    bool waits = false;
    uint64_t wait = 0;  // the number of the wait, if it waits
  };
  // The owner may say this of a call that has yet to start.
  struct Told {
    uint32_t taken = 0;
    bool cancelled = false;
  };

  void go_on(const Key& key) {
    auto found = running_.find(key);
    if (found != running_.end() && std::exchange(found->second.waits, false)) yield(key);
  }
  void start() {
    while (auto started = groups_.next()) {
      groups_.check_invariants();
      const auto& [from, call] = started->call;
      if (!from->open()) {
        groups_.done(started->group);
        continue;
      }
      check_start(from->connection(), call);
      const Key key{from->connection(), call.seq};
      running_[key] = {started->call, started->group};
      after(call.plan.yield_us, "generator begins", [this, key] { yield(key); });
    }
  }
  // The calls of a group start in the order in which they came, and no more of them than its limit.
  void check_start(uint64_t connection, const StreamCall& call) {
    const std::string& group = call.plan.group;
    const auto at_once = std::count_if(running_.begin(), running_.end(), [&](const auto& run) {
      return run.second.started.call.plan.group == group;
    });
    if (at_once >= limits_.at(group))
      violation(fmt::format("group '{}' of an actor runs {} calls, its limit is {}", group,
                            at_once + 1, limits_.at(group)));
    uint32_t& last = last_started_[{connection, group}];
    if (call.seq <= last)
      violation(fmt::format("call {} of group '{}' starts after call {}", call.seq, group, last));
    last = call.seq;
  }
  void yield(const Key& key) {
    auto found = running_.find(key);
    if (found == running_.end()) return;
    Running& run = found->second;
    const StreamCall& call = run.started.call;
    const Told& told = told_[key];
    // A repeated attempt yields again what its owner has, without sending it.
    run.yielded = std::max(run.yielded, call.items_known);
    if (told.cancelled || run.yielded >= call.plan.items)
      return ended(key, told.cancelled || call.plan.fails);
    const int64_t ahead =
        told.taken == worker::kAllItems ? 0 : static_cast<int64_t>(run.yielded) - told.taken;
    if (call.plan.limit > 0 && ahead >= call.plan.limit) {
      run.waits = true;
      run.wait = ++last_wait_;
      return watch(key, run.wait, 0);
    }
    if (mistakes_left_ > 0 && random_.chance(0.05)) send_wrong_item(run);
    send_item(*run.started.from, call.seq, run.yielded++);
    after(call.plan.yield_us, "item", [this, key] { yield(key); });
  }
  // A generator that waits hears of room soon after its consumer has made it: what its owner knew
  // has arrived long before the next look.
  void watch(const Key& key, uint64_t wait, uint32_t taken_before) {
    constexpr int64_t kLookUs = 100'000;
    after(kLookUs, "look at a wait", [this, key, wait, taken_before] {
      auto found = running_.find(key);
      if (found == running_.end() || !found->second.waits || found->second.wait != wait) return;
      const Running& run = found->second;
      // News over a connection that broke do not arrive, whether its ends know of that or not.
      if (!run.started.from->open() || network_.is_cut(key.first)) return;
      if (static_cast<int64_t>(run.yielded) - taken_before < run.started.call.plan.limit)
        violation(fmt::format("call {} waits for room with {} items, of which {} were taken",
                              key.second, run.yielded, taken_before));
      watch(key, wait, taken(key));
    });
  }
  // How many items of the call the consumer has taken, as its owner knows.
  uint32_t taken(const Key& key) const;
  static void send_item(Channel& to, uint32_t seq, uint32_t index);
  // One that was sent already, one too early, or one of no call.
  void send_wrong_item(const Running& run) {
    --mistakes_left_;
    const uint32_t seq = run.started.call.seq;
    switch (random_.below(3)) {
      case 0: return send_item(*run.started.from, seq, run.yielded + 1);
      case 1: return send_item(*run.started.from, seq + 1'000'000, run.yielded);
      default: send_item(*run.started.from, seq, run.yielded > 0 ? run.yielded - 1 : 1);
    }
  }
  void ended(const Key& key, bool failed);
  void caller_gone(uint64_t connection) {
    std::vector<Key> lost;
    for (const auto& [key, run] : running_) {
      if (key.first == connection) lost.push_back(key);
    }
    for (const Key& key : lost) {
      groups_.done(running_.at(key).group);
      running_.erase(key);
    }
    start();
  }

  const std::map<std::string, int> limits_;
  Rng& random_;
  int64_t mistakes_left_ = -1;  // -1: it keeps to the protocol
  const StreamOwner* owner_ = nullptr;
  uint64_t last_wait_ = 0;
  worker::CallGroups<Waiting> groups_;
  std::map<uint64_t, ChannelPtr> channels_;
  std::map<Key, Running> running_;
  std::map<Key, Told> told_;
  std::map<std::pair<uint64_t, std::string>, uint32_t> last_started_;
};

class StreamOwner final : public Process, private worker::RefSink {
 public:
  StreamOwner(World& world, int host, StreamActor& actor)
      : Process(world.clock, world.network, host),
        world_(world),
        actor_(actor),
        refs_(*this, WorkerId::random(world.rng)) {
    after(0, "owner starts", [this] { connect(); });
  }
  ~StreamOwner() override { refs_.close(); }

  void submit(const StreamPlan& plan) {
    const TaskId id = make_task_id(++last_order_, JobId());
    Program& program = programs_[id];
    program.plan = plan;
    program.order = last_order_;
    streams_.open(id, plan.limit);
    worker::ObjectEntry* consumer = refs_.create(make_object_id(id, worker::kStreamIndex));
    consumer->kind = worker::ObjectEntry::Kind::kStream;
    consumer->state = worker::ObjectState::kInMemory;
    program.consumer = Ref(consumer);
    drive([&] { send(id); });
    take_later(id);
  }
  void on_item(Channel& from, uint32_t seq, uint32_t index) {
    auto sent = in_flight_.find(seq);
    const bool in_flight =
        channel_ && channel_->connection() == from.connection() && sent != in_flight_.end();
    if (!in_flight) return refuse(from, fmt::format("of call {}, which is not in flight", seq));
    const TaskId id = sent->second;
    drive([&] {
      GeneratorStream* stream = streams_.find(id);
      Ref item;
      if (!stream || stream->arrive(index, &item) == GeneratorStream::Arrival::kRefused)
        return refuse(from, fmt::format("{} of stream {}, which is not the next one", index,
                                        programs_.at(id).order));
      if (item) contents_[item.id()] = {programs_.at(id).order, index};
      const int64_t limit = programs_.at(id).plan.limit;
      if (limit > 0 && stream->taken() != worker::kAllItems &&
          static_cast<int64_t>(stream->received()) - stream->taken() > limit)
        violation(fmt::format("{} items of stream {} wait, its limit is {}",
                              stream->received() - stream->taken(), programs_.at(id).order, limit));
      acknowledge(id, *stream);
    });
  }
  // As worker/service/streams: the peer makes a mistake, and its calls are sent again.
  void refuse(Channel& from, const std::string& what) {
    if (!actor_.misbehaves()) violation("there comes item " + what);
    ++refused_;
    from.close();
  }
  void on_reply(uint32_t seq, bool failed) {
    auto sent = in_flight_.extract(seq);
    if (sent.empty()) violation(fmt::format("a reply to call {}, which is not in flight", seq));
    const TaskId id = sent.mapped();
    drive([&] {
      GeneratorStream& stream = *streams_.find(id);
      const Ref last = failed ? stream.end_with_error() : stream.end();
      programs_.at(id).failed = failed;
      programs_.at(id).replied = true;
      streams_.ended(id, true);
    });
  }
  // Returns what is missing until so many streams have ended and nothing is left, or "".
  std::string left(int64_t submitted) const {
    if (std::ssize(programs_) < submitted) return "not all are submitted";
    for (const auto& [id, program] : programs_) {
      if (!program.replied || !program.done)
        return fmt::format("stream {} has {} of {} items and does not end", program.order,
                           program.taken, program.plan.items);
    }
    if (streams_.size() > 0) return fmt::format("{} streams are left", streams_.size());
    if (refs_.size() > 0) return fmt::format("{} references are left", refs_.size());
    return "";
  }
  size_t retries() const { return retries_; }
  size_t refused() const { return refused_; }
  // How many items of the call were taken; 0: it is not in flight over this connection.
  uint32_t taken(uint64_t connection, uint32_t seq) const {
    auto sent = in_flight_.find(seq);
    const bool here = channel_ && channel_->connection() == connection && sent != in_flight_.end();
    return here ? programs_.at(sent->second).taken : 0;
  }

 private:
  struct Program {
    StreamPlan plan;
    uint64_t order = 0;
    Ref consumer;
    uint32_t seq = 0, taken = 0;
    bool cancelled = false, failed = false, replied = false, done = false;
  };

  // RefSink
  void add_borrower(const proto::WorkerAddress&, const std::vector<ObjectId>&,
                    const WorkerId&) override {}
  void remove_borrower(const proto::WorkerAddress&, const ObjectId&, uint32_t) override {}
  void free_object(worker::ObjectEntry&) override {}
  void actor_out_of_scope(const ActorId&) override {}
  void stream_dropped(const TaskId& id) override {
    GeneratorStream* stream = streams_.find(id);
    if (!stream) return;
    const bool runs = !stream->ended();
    streams_.drop(id);
    if (runs) acknowledge(id, *stream);
  }

  template <class F>
  void drive(F event) {
    event();
    refs_.drain_releases();
    streams_.check_invariants();
    refs_.check_invariants();
  }
  void connect() {
    network_.connect(
        *this, actor_.host(), "owner connects", [this]() -> Process* { return &actor_; },
        [this](Result<ChannelPtr> channel) {
          if (!channel) return connect();
          channel_ = *channel;
          channel_->on_closed = [this] {
            // The calls in flight are sent again, in their order.
            channel_.reset();
            in_flight_.clear();
            connect();
          };
          last_seq_ = 0;
          for (auto& [id, program] : programs_) {
            if (!program.replied) again_.emplace(program.order, id);
          }
          drive([this] {
            for (const auto& [order, id] : std::exchange(again_, {})) {
              retries_ += programs_.at(id).seq > 0;
              send(id);
            }
          });
        });
  }
  void send(const TaskId& id) {
    if (!channel_) return;
    Program& program = programs_.at(id);
    program.seq = ++last_seq_;
    in_flight_[program.seq] = id;
    channel_->send("call", [call = StreamCall{program.seq, program.order, program.plan,
                                              streams_.find(id)->received()}](Channel& at) {
      static_cast<StreamActor*>(at.process())->call(at, call);
    });
    if (program.cancelled) send_cancel(program);
    // The news for an earlier attempt have gone with its connection.
    tell_taken(program, streams_.find(id)->taken());
  }
  void send_cancel(const Program& program) {
    if (!channel_) return;
    channel_->send("cancel", [seq = program.seq](Channel& at) {
      static_cast<StreamActor*>(at.process())->cancel(at, seq);
    });
  }
  void tell_taken(const Program& program, uint32_t taken) {
    if (!channel_ || program.replied) return;
    channel_->send("items taken", [seq = program.seq, taken](Channel& at) {
      static_cast<StreamActor*>(at.process())->on_taken(at, seq, taken);
    });
  }
  void acknowledge(const TaskId& id, GeneratorStream& stream) {
    if (auto taken = stream.acknowledge()) tell_taken(programs_.at(id), *taken);
  }
  void take_later(const TaskId& id) {
    const Program& program = programs_.at(id);
    const bool rests = program.taken == program.plan.rest_after;
    after(rests ? kRestUs : program.plan.take_us, "consumer", [this, id] {
      drive([&] { take(id); });
      if (!programs_.at(id).done) take_later(id);
    });
  }
  void take(const TaskId& id) {
    Program& program = programs_.at(id);
    GeneratorStream* stream = streams_.find(id);
    if (!stream) violation(fmt::format("stream {} is gone before its consumer", program.order));
    Ref item;
    if (world_.rng.chance(0.2)) stream->peek(&item);
    switch (stream->take(&item)) {
      case GeneratorStream::Next::kPending: break;
      case GeneratorStream::Next::kItem: took(id, program, *stream, item); break;
      case GeneratorStream::Next::kEnd:
        check_end(program);
        program.done = true;
        program.consumer.reset();
    }
  }
  void took(const TaskId& id, Program& program, GeneratorStream& stream, const Ref& item) {
    const ObjectId next = make_object_id(id, worker::kFirstItemIndex + program.taken);
    if (!program.cancelled && item.id() != next)
      violation(fmt::format("the item after {} of stream {} is another one", program.taken,
                            program.order));
    // An error at the end has no contents.
    auto contents = contents_.find(item.id());
    if (!program.cancelled && contents != contents_.end() &&
        contents->second != std::pair(program.order, program.taken))
      violation(fmt::format("item {} of stream {} has the contents of item {}", program.taken,
                            program.order, contents->second.second));
    ++program.taken;
    acknowledge(id, stream);
    if (!program.cancelled && program.taken == program.plan.cancel_after && !program.replied) {
      program.cancelled = true;
      stream.cancel();
      send_cancel(program);
    }
    if (program.taken != program.plan.drop_after) return;
    program.done = true;
    program.consumer.reset();
  }
  void check_end(const Program& program) const {
    const uint32_t all = program.plan.items + program.failed;
    if (!program.cancelled && program.taken != all)
      violation(
          fmt::format("stream {} ends after {} of {} items", program.order, program.taken, all));
  }

  World& world_;
  StreamActor& actor_;
  worker::RefTable refs_;
  worker::GeneratorStreams streams_{refs_};
  ChannelPtr channel_;
  std::map<TaskId, Program> programs_;
  std::map<uint32_t, TaskId> in_flight_;  // by sequence number
  std::map<uint64_t, TaskId> again_;      // by order
  uint32_t last_seq_ = 0;
  uint64_t last_order_ = 0;
  // Which item of which stream each object was filled with.
  std::map<ObjectId, std::pair<uint64_t, uint32_t>> contents_;
  size_t retries_ = 0, refused_ = 0;
};

uint32_t StreamActor::taken(const Key& key) const { return owner_->taken(key.first, key.second); }

void StreamActor::send_item(Channel& to, uint32_t seq, uint32_t index) {
  to.send("item", [seq, index](Channel& at) {
    static_cast<StreamOwner*>(at.process())->on_item(at, seq, index);
  });
}

void StreamActor::ended(const Key& key, bool failed) {
  const Running run = std::move(running_.extract(key).mapped());
  groups_.done(run.group);
  run.started.from->send("reply", [seq = key.second, failed](Channel& at) {
    static_cast<StreamOwner*>(at.process())->on_reply(seq, failed);
  });
  start();
}

StreamPlan random_plan(World& world) {
  StreamPlan plan;
  const char* groups[] = {"", "a", "b"};
  plan.group = groups[world.between(0, 2)];
  plan.items = static_cast<uint32_t>(world.between(0, 20));
  plan.limit = world.rng.chance(0.5) ? world.between(1, 6) : 0;
  plan.fails = world.rng.chance(0.2);
  plan.yield_us = world.between(1, 2000);
  plan.take_us = world.between(50, 3000);
  if (world.rng.chance(0.2)) plan.rest_after = world.between(1, 6);
  if (world.rng.chance(0.2)) plan.drop_after = world.between(1, 20);
  if (world.rng.chance(0.1)) plan.cancel_after = world.between(1, 20);
  return plan;
}

}  // namespace

std::string run_streams(uint64_t seed) {
  World world(seed, {});
  const std::map<std::string, int> limits{{"", static_cast<int>(world.between(1, 3))},
                                          {"a", static_cast<int>(world.between(1, 3))},
                                          {"b", 1}};
  auto* actor = world.adopt(std::make_unique<StreamActor>(world, 1, limits));
  auto* owner = world.adopt(std::make_unique<StreamOwner>(world, 2, *actor));
  actor->set_owner(*owner);
  if (seed % 5 == 4) actor->misbehave(world.between(1, 5));
  const int64_t calls = world.between(1, 20);
  for (int64_t i = 0; i < calls; ++i)
    world.clock.after(world.between(0, 50'000), "submit", 0,
                      [&world, owner] { owner->submit(random_plan(world)); });
  for (int64_t breaks = seed % 2 == 0 ? 0 : world.between(1, 3); breaks > 0; --breaks)
    world.clock.after(world.between(0, 100'000), "break", 0,
                      [&world] { world.network.break_random(); });
  while (!owner->left(calls).empty() || !actor->idle()) {
    if (!world.clock.step() || world.clock.now_us() > 600'000'000)
      violation(fmt::format("seed {}: {}", seed, owner->left(calls)));
  }
  return fmt::format("seed {}: {} events, {} streams, {} sent again, {} items refused\n", seed,
                     world.clock.events(), calls, owner->retries(), owner->refused());
}

}  // namespace rt::sim
