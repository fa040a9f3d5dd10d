// The shortest form of worker/service/held_frames.h stands here around the tables and FrameLines.
#include "tests/sim/borrows.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "common/base/rng.h"
#include "tests/sim/ledger.h"
#include "tests/sim/value_check.h"
#include "worker/core/frame_lines.h"
#include "worker/core/ref_table.h"

namespace rt::worker {
namespace {

class World;

using sim::violation;
using Address = std::shared_ptr<const proto::WorkerAddress>;
struct Lent {
  ObjectId id;
  Address owner;
};

class Process final : public RefSink {
 public:
  Process(World& world, const WorkerId& id) : world_(world), id_(id), table_(*this, id) {
    auto address = std::make_shared<proto::WorkerAddress>();
    address->set_worker_id(id.binary());
    address_ = address;
  }

  const WorkerId& id() const { return id_; }
  RefTable& table() { return table_; }
  std::vector<Ref>& kept() { return kept_; }
  void put();
  void read(const Ref& ref);
  void call(Process& callee);
  void release_frames();
  bool is_idle() const { return calls_.empty() && frames_.empty(); }
  bool alive() const { return alive_; }
  // Whether this owner has the object that somebody `uses`.
  bool has(const ObjectId& id, const char* uses);
  void die();
  // Its connections to the process have ended: its calls to it are not answered any more.
  void peer_gone(Process& peer);

  void add_borrower(const proto::WorkerAddress& owner, const std::vector<ObjectId>& ids,
                    const WorkerId& borrower) override;
  void remove_borrower(const proto::WorkerAddress& owner, const ObjectId& id,
                       uint32_t lent) override;
  void free_object(ObjectEntry& entry) override;
  void actor_out_of_scope(const ActorId&) override {}
  void stream_dropped(const TaskId&) override {}

 private:
  struct Frame : HeldFrame {
    Process* receiver = nullptr;
    uint64_t call = 0;
    std::vector<Lent> lent;
    std::vector<Ref> refs;  // Kept until the frame leaves.
  };

  // Asks the owner of an object. `done` runs when it has answered, or when it has died.
  void ask(Process& owner, std::function<void()> serve, std::function<void()> done);
  Lent lent(const Ref& ref) const {
    auto& entry = entry_of(ref);
    return {entry.id, entry.owned ? address_ : entry.details().owner};
  }
  void run(Process& caller, uint64_t call, const std::vector<Lent>& args);
  void lend_by(const std::shared_ptr<Frame>& frame, const Ref& ref);
  std::vector<Ref> take(const std::vector<Lent>& brought, bool registered);
  // The bytes of an object that it owns, and the references in those of another one.
  std::string encode(const ObjectId& id);
  std::vector<Lent> decode(const ObjectId& id, const std::string& value) const;
  void make(std::vector<Ref> inside);
  void keep_some(const std::vector<Ref>& refs);

  World& world_;
  const WorkerId id_;
  RefTable table_;
  Address address_;
  std::vector<Ref> kept_;
  struct Call {
    Process* callee;
    std::vector<Ref> args;
  };
  std::map<uint64_t, Call> calls_;  // Not answered yet.
  uint64_t last_call_ = 0;
  struct Question {
    Process* owner;
    std::function<void()> done;
  };
  std::map<uint64_t, Question> asked_;  // Not answered yet.
  uint64_t last_question_ = 0;
  bool alive_ = true;
  std::set<ObjectId> borrowed_;  // At any time.
  FrameLines<Process*, Frame> frames_;
  std::set<Process*> gone_;  // Its connections to them have ended.
};

class World {
 public:
  explicit World(uint64_t seed) : rng(seed), sparse_(seed % 4 == 3) {
    for (auto& process : processes_) process.emplace(*this, WorkerId::random(rng));
    for (auto& from : processes_) {
      for (auto& to : processes_)
        if (sparse_ && rng.chance(0.4)) slow_.insert({&*from, &*to});
    }
  }
  ~World() {
    links_.clear();
    news_.clear();
    for (auto& process : processes_) process->table().close();
  }

  Process& any() { return *processes_[rng.below(processes_.size())]; }
  Process& of(const proto::WorkerAddress& address) {
    for (auto& process : processes_)
      if (process->id().view() == address.worker_id()) return *process;
    std::abort();
  }
  void send(Process& from, Process& to, std::function<void()> message) {
    if (from.alive() && to.alive()) links_[{&from, &to}].push_back(std::move(message));
  }
  // Delivers one message, if there is one.
  bool deliver() {
    std::erase_if(links_, [](const auto& link) { return link.second.empty(); });
    if (links_.empty()) return false;
    auto any = [this] {
      return std::next(links_.begin(), static_cast<ptrdiff_t>(rng.below(links_.size())));
    };
    auto link = any();
    for (int left = kPatience; left > 0 && slow_.contains(link->first); --left) link = any();
    auto message = std::move(link->second.front());
    link->second.pop_front();
    const Process& to = *link->first.second;
    if (to.alive()) message();
    settle();
    return true;
  }
  // Ends a process. What it has sent arrives, and then the end of its connections, and at some time
  // the news of the head.
  void kill(Process& process) {
    process.die();
    for (auto& other : processes_) {
      if (&*other == &process) continue;
      links_.erase({&*other, &process});
      links_[{&process, &*other}].push_back([&process, to = &*other] {
        to->table().borrower_gone(process.id());
        to->peer_gone(process);
      });
      news_.push_back([&process, to = &*other] { to->table().borrower_died(process.id()); });
    }
  }
  // Lent by a process that has died before it could say so to who was to have it.
  std::set<ObjectId> lent_in_vain;
  // Borrowed by a process that has died: what it has sent last may come when they have been freed.
  std::set<ObjectId> at_risk;
  bool sparse() const { return sparse_; }
  bool is_wrongly_freed(const ObjectId& id) const {
    return freed.contains(id) && !at_risk.contains(id);
  }
  void settle() {
    for (auto& process : processes_) {
      if (!process->alive()) continue;
      process->table().drain_releases();
      process->release_frames();
    }
    for (auto& process : processes_) {
      if (!process->alive()) continue;
      process->table().check_invariants();
      for (const Ref& ref : process->kept())
        if (is_wrongly_freed(ref.id())) violation("an object is freed while somebody refers to it");
      process->table().for_each([&](const ObjectEntry& entry) {
        for (const Ref& ref : entry.details().contained)
          if (is_wrongly_freed(ref.id()))
            violation("an object is freed while it is inside another one");
      });
    }
  }

  // All other processes let go of the object, and of what is inside it.
  void leave_to(const Process& reader, const ObjectId& id);

  Rng rng;
  std::set<ObjectId> freed;
  std::map<ObjectId, std::vector<Lent>> inside;  // The references in the values of objects.
  size_t borrowed_inside = 0;                    // References that readers got out of values.

  void run() {
    for (int left = sparse_ ? kSparseSteps : kSteps, i = 0; i < left; ++i) {
      Process& process = any();
      if (dies_ && i == dies_at_) kill(process);
      if (!news_.empty() && rng.chance(0.1)) {
        news_.front()();
        news_.pop_front();
      }
      if (!process.alive()) continue;
      if (sparse_ && process.kept().size() > kMostKept) process.kept().resize(kMostKept);
      switch (sparse_ ? kSparse[rng.below(kSparse.size())] : rng.below(10)) {
        case 0: process.put(); break;
        case 1:
        case 2:
          if (&process != &*processes_[0]) break;
          [[fallthrough]];
        case 3: process.call(any()); break;
        case 4:
          if (!process.kept().empty()) {
            std::swap(process.kept()[rng.below(process.kept().size())], process.kept().back());
            process.kept().pop_back();
          }
          break;
        case 5:
        case 6:
          if (!process.kept().empty())
            process.read(Ref(process.kept()[rng.below(process.kept().size())]));
          break;
        default: deliver();
      }
      settle();
    }
    auto run_out = [this] {
      while (deliver()) {}
      for (; !news_.empty(); news_.pop_front()) news_.front()();
      settle();
      while (deliver()) {}
    };
    run_out();
    for (auto& process : processes_) {
      if (!process->alive()) continue;
      if (!process->is_idle()) violation("a call is never answered");
      process->kept().clear();
    }
    settle();
    run_out();
    check_nothing_left();
  }

 private:
  void check_nothing_left() {
    // Nobody can tell that they are not needed, nor what is inside them.
    std::set<ObjectId> excused;
    std::vector<ObjectId> left(lent_in_vain.begin(), lent_in_vain.end());
    while (!left.empty()) {
      const ObjectId id = left.back();
      left.pop_back();
      if (!excused.insert(id).second) continue;
      for (const Lent& inner : inside[id]) left.push_back(inner.id);
    }
    for (auto& process : processes_) {
      if (!process->alive()) continue;
      process->table().for_each([&](const ObjectEntry& entry) {
        if (!excused.contains(entry.id)) violation("an object is left that nobody refers to");
      });
    }
  }

  // The cases of run() among which a sparse program draws: in most of them a message arrives.
  static constexpr std::array<uint64_t, 24> kSparse{0, 0, 1, 3, 4, 4, 5, 6, 7, 7, 7, 7,
                                                    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
  static constexpr int kSteps = 150, kSparseSteps = 1500;
  static constexpr size_t kMostKept = 5;  // references of a process, in a sparse program
  // How often another message goes before one over a slow connection.
  static constexpr int kPatience = 5;

  // Side by side, so that their addresses have an order that is the same in each run.
  std::array<std::optional<Process>, 3> processes_;
  std::map<std::pair<Process*, Process*>, std::deque<std::function<void()>>> links_;
  std::deque<std::function<void()>> news_;  // The head has not told them yet.
  // Objects have few holders, so that each step may be that of the last one, and connections are
  // slow in one direction.
  const bool sparse_;
  std::set<std::pair<Process*, Process*>> slow_;
  const bool dies_ = rng.chance(0.5);  // One of the processes does.
  const int64_t dies_at_ = static_cast<int64_t>(rng.below(kSteps));
};

void World::leave_to(const Process& reader, const ObjectId& id) {
  std::set<ObjectId> left{id};
  if (auto known = inside.find(id); known != inside.end()) {
    for (const Lent& inner : known->second) left.insert(inner.id);
  }
  for (auto& process : processes_) {
    if (&*process != &reader)
      std::erase_if(process->kept(), [&](const Ref& kept) { return left.contains(kept.id()); });
  }
}

void Process::make(std::vector<Ref> inside) {
  ObjectEntry* entry = table_.create(ObjectId::random(world_.rng));
  for (const Ref& ref : inside) world_.inside[entry->id].push_back(lent(ref));
  entry->mutable_details().contained = std::move(inside);
  kept_.emplace_back(entry);
  entry->state = ObjectState::kInMemory;
  entry->ready = true;
}

void Process::put() {
  std::vector<Ref> inside;
  for (const Ref& ref : kept_)
    if (world_.rng.chance(world_.sparse() ? 0.2 : 0.4)) inside.push_back(ref);
  make(std::move(inside));
}

void Process::keep_some(const std::vector<Ref>& refs) {
  for (const Ref& ref : refs)
    if (world_.rng.chance(0.3)) kept_.push_back(ref);
}

// As Objects::resolve() and decode() do it: the owner is asked once, and what is inside is
// registered with its owners before the object can go.
void Process::read(const Ref& ref) {
  auto& entry = entry_of(ref);
  if (entry.owned || !entry.details().contained.empty())
    return keep_some(std::vector<Ref>(entry.details().contained));
  Process& owner = world_.of(*entry.details().owner);
  if (world_.rng.chance(world_.sparse() ? 0.7 : 0.3)) world_.leave_to(*this, ref.id());
  world_.send(*this, owner, [this, &owner, ref] {
    if (!owner.has(ref.id(), "reads")) return;
    world_.send(owner, *this, [this, ref, value = owner.encode(ref.id())] {
      auto& entry = entry_of(ref);
      sim::decode_damaged(world_.rng, value);
      if (entry.details().contained.empty()) {
        entry.mutable_details().contained = take(decode(ref.id(), value), false);
        std::vector<ObjectEntry*> borrowed;
        for (const Ref& inner : entry.details().contained) borrowed.push_back(&entry_of(inner));
        table_.register_now(borrowed);
        world_.borrowed_inside += borrowed.size();
      }
      keep_some(std::vector<Ref>(entry.details().contained));
      // Many a reader unpacks a value and lets it go at once.
      if (world_.rng.chance(0.5))
        std::erase_if(kept_, [&](const Ref& kept) { return kept.id() == ref.id(); });
    });
  });
}

std::string Process::encode(const ObjectId& id) {
  const std::vector<Ref>& inside = table_.find(id)->details().contained;
  const std::string packed =
      pack_refs(inside, [this](const Ref& ref) -> const proto::WorkerAddress& {
        const auto& entry = entry_of(ref);
        return entry.owned ? *address_ : *entry.details().owner;
      });
  return sim::encoded_value(std::hash<ObjectId>()(id), packed);
}

std::vector<Lent> Process::decode(const ObjectId& id, const std::string& value) const {
  std::vector<Lent> refs;
  for (PackedRef& ref : sim::decoded_refs(std::hash<ObjectId>()(id), value))
    refs.push_back({ref.id, std::move(ref.owner)});
  const bool same = std::ranges::equal(refs, world_.inside[id], [](const Lent& a, const Lent& b) {
    return a.id == b.id && a.owner->worker_id() == b.owner->worker_id();
  });
  if (!same) violation("other references come out of a value than were put into it");
  return refs;
}

void Process::ask(Process& owner, std::function<void()> serve, std::function<void()> done) {
  // The owner is gone, and reading the object will say so.
  if (!owner.alive()) return world_.send(*this, *this, std::move(done));
  const uint64_t number = ++last_question_;
  asked_[number] = {&owner, std::move(done)};
  world_.send(*this, owner, [this, &owner, number, serve = std::move(serve)] {
    serve();
    world_.send(owner, *this, [this, number] {
      if (auto answered = asked_.extract(number); !answered.empty()) answered.mapped().done();
    });
  });
}

bool Process::has(const ObjectId& id, const char* uses) {
  if (table_.find(id)) return true;
  if (!world_.at_risk.contains(id))
    violation(fmt::format("the owner has freed what somebody {}", uses));
  return false;
}

void Process::die() {
  alive_ = false;
  world_.at_risk.insert(borrowed_.begin(), borrowed_.end());
  frames_.for_each([this](Process*, const Frame& frame) {
    for (const Lent& item : frame.lent) world_.lent_in_vain.insert(item.id);
  });
  frames_ = {};
  calls_.clear();
  asked_.clear();
  kept_.clear();
}

void Process::peer_gone(Process& peer) {
  gone_.insert(&peer);
  std::erase_if(calls_, [&peer](const auto& call) { return call.second.callee == &peer; });
  std::vector<std::function<void()>> unanswered;
  std::erase_if(asked_, [&](auto& item) {
    if (item.second.owner != &peer) return false;
    unanswered.push_back(std::move(item.second.done));
    return true;
  });
  for (const auto& done : unanswered) done();
}

void Process::call(Process& callee) {
  if (&callee == this || !callee.alive()) return;
  std::vector<Ref> args;
  std::vector<Lent> described;
  for (const Ref& ref : kept_) {
    if (!world_.rng.chance(0.5)) continue;
    args.push_back(ref);
    described.push_back(lent(ref));
  }
  const uint64_t number = ++last_call_;
  calls_[number] = {&callee, std::move(args)};
  world_.send(*this, callee,
              [this, &callee, number, described] { callee.run(*this, number, described); });
}

void Process::run(Process& caller, uint64_t call, const std::vector<Lent>& args) {
  std::vector<Ref> brought = take(args, false);
  auto frame = std::make_shared<Frame>();
  frame->receiver = &caller;
  frame->call = call;
  frames_.hold(&caller, frame);
  for (const std::vector<Ref>& refs : {brought, kept_}) {
    for (const Ref& ref : refs)
      if (world_.rng.chance(0.3)) lend_by(frame, ref);
  }
  for (Ref& ref : kept_)
    if (world_.rng.chance(0.3)) ref.reset();
  std::erase_if(kept_, [](const Ref& ref) { return !ref; });
  for (const Ref& ref : brought)
    if (world_.rng.chance(0.3)) kept_.push_back(ref);
  brought.clear();
  table_.register_kept();
  frame->after = table_.last_registration();
}

void Process::lend_by(const std::shared_ptr<Frame>& frame, const Ref& ref) {
  auto& entry = entry_of(ref);
  frame->lent.push_back(lent(ref));
  if (entry.owned) {
    table_.add_borrower(entry.id, frame->receiver->id());
    return;
  }
  frame->refs.push_back(ref);
  Process& owner = world_.of(*entry.details().owner);
  if (&owner == frame->receiver) return;
  ++frame->unasked;
  ask(
      owner,
      [&owner, frame, id = entry.id] {
        if (owner.has(id, "lends")) owner.table().add_borrower(id, frame->receiver->id());
      },
      [frame] { --frame->unasked; });
}

void Process::release_frames() {
  frames_.release(
      table_, [this](Process* to) { return !gone_.contains(to); },
      [this](Process* to, Frame& frame) {
        world_.send(*this, *to, [to, call = frame.call, lent = std::move(frame.lent)] {
          std::vector<Ref> results = to->take(lent, true);
          to->calls_.erase(call);
          // The result is one value with all of them inside, or several references.
          if (to->world_.rng.chance(0.3)) return to->make(std::move(results));
          for (const Ref& ref : results)
            if (to->world_.rng.chance(0.5)) to->kept_.push_back(ref);
        });
      });
  frames_.check_invariants();
}

std::vector<Ref> Process::take(const std::vector<Lent>& brought, bool registered) {
  std::vector<Ref> refs;
  for (const Lent& item : brought) {
    ObjectEntry* entry = table_.borrow(item.id, item.owner, registered);
    if (!entry && world_.at_risk.contains(item.id)) continue;
    if (!entry) violation("an object is freed by its owner while it is lent to it");
    if (!entry->owned) borrowed_.insert(item.id);
    if (world_.is_wrongly_freed(item.id)) violation("an object is freed while it is on its way");
    refs.emplace_back(entry);
  }
  return refs;
}

void Process::add_borrower(const proto::WorkerAddress& owner, const std::vector<ObjectId>& ids,
                           const WorkerId& borrower) {
  Process& to = world_.of(owner);
  ask(
      to,
      [&to, ids, borrower] {
        for (const ObjectId& id : ids) {
          if (to.has(id, "borrows")) to.table().add_borrower(id, borrower);
        }
      },
      [this, ids] { table_.confirm_borrows(ids); });
}

void Process::remove_borrower(const proto::WorkerAddress& owner, const ObjectId& id,
                              uint32_t lent) {
  Process& to = world_.of(owner);
  world_.send(*this, to, [this, &to, id, lent] { to.table().remove_borrower(id, id_, lent); });
}

void Process::free_object(ObjectEntry& entry) { world_.freed.insert(entry.id); }

}  // namespace
}  // namespace rt::worker

namespace rt::sim {

std::string run_borrows(uint64_t seed) {
  worker::World world(seed);
  world.run();
  return fmt::format("{} references were read out of objects with seed {}\n", world.borrowed_inside,
                     seed);
}

}  // namespace rt::sim
