#include "tests/sim/scenario.h"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "daemons/head/core/actor_queries.h"
#include "daemons/head/core/records.h"

namespace rt::sim {
namespace {

Scenario* current = nullptr;

// Handler of SIGSEGV, and of SIGABRT, which a failed RT_CHECK of a core or a violation() raises.
void print_reproduction(int) {
  if (current) {
    std::fprintf(stderr, "simulation with seed %llu at %.3f ms, event %llu. The last events:\n%s",
                 static_cast<unsigned long long>(current->world().seed),
                 static_cast<double>(current->now_us()) / 1000,
                 static_cast<unsigned long long>(current->world().clock.events()),
                 current->world().clock.recent().c_str());
    std::fputs(current->ledger().describe_pending(100).c_str(), stderr);
    for (SimNode* node : current->nodes()) {
      std::fprintf(stderr, "node #%llu has %s free of %s\n",
                   static_cast<unsigned long long>(node->number()),
                   node->core().view().resources().available().to_string().c_str(),
                   node->core().view().resources().total().to_string().c_str());
      for (const auto& [key, bundle] : node->core().view().bundles().all())
        std::fprintf(stderr, "  bundle %d of group %s, epoch %lld%s\n", key.index,
                     key.group.hex().substr(0, 8).c_str(), static_cast<long long>(bundle.epoch),
                     bundle.returning ? ", returning" : "");
      for (SimWorker* worker : node->workers()) std::fputs(worker->describe().c_str(), stderr);
    }
    std::fputs(current->ledger().groups().describe().c_str(), stderr);
    std::fprintf(stderr, "SIM_SEED=%llu repeats it, SIM_TRACE=1 prints every event.\n",
                 static_cast<unsigned long long>(current->world().seed));
    current = nullptr;
  }
  std::signal(SIGABRT, SIG_DFL);
  std::signal(SIGSEGV, SIG_DFL);
}

}  // namespace

void violation(const std::string& what) {
  std::fprintf(stderr, "violation: %s\n", what.c_str());
  std::abort();
}

ResourceSet resources(const std::map<std::string, double>& amounts) {
  return ResourceSet::from_map(amounts).value();
}

Scenario::Scenario(ScenarioOptions options)
    : options_(std::move(options)), world_(options_.seed, options_.network) {
  current = this;
  std::signal(SIGABRT, print_reproduction);
  std::signal(SIGSEGV, print_reproduction);
  world_.clock.print_events(std::getenv("SIM_TRACE") != nullptr);
  world_.settings.prestart_workers = 2;
  if (options_.settings) options_.settings(world_.settings);
  world_.network.on_broken = [this](Process&, Process&) { world_.ledger.network_fault(); };
  start_head();
  for (int i = 0; i < options_.nodes; ++i) add_node(options_.node_resources);
}

Scenario::~Scenario() { current = nullptr; }

// ---- build

SimNode& Scenario::add_node(const std::map<std::string, double>& amounts) {
  SimNode* node = world_.adopt(
      std::make_unique<SimNode>(world_, ++last_host_, resources(amounts), all_nodes_.empty()));
  all_nodes_.push_back(node);
  node->on_gone = [this, node] {
    ++nodes_killed_;
    world_.ledger.process_fault();
    world_.ledger.daemon_fault();
    for (SimOwner* owner : owners()) {
      if (&owner->node() == node) owner->crash();
    }
  };
  return *node;
}

SimOwner& Scenario::add_owner(SimNode& node) {
  all_owners_.push_back(world_.adopt(std::make_unique<SimOwner>(world_, node)));
  return *all_owners_.back();
}

SimOwner& Scenario::add_heir(const SimOwner& driver) {
  all_owners_.push_back(
      world_.adopt(std::make_unique<SimOwner>(world_, random_node(), driver.job())));
  return *all_owners_.back();
}

void Scenario::wait_ready() {
  run_until("nodes register and drivers join", [this] {
    auto ns = nodes();
    auto os = owners();
    return std::all_of(ns.begin(), ns.end(), [](SimNode* n) { return n->registered(); }) &&
           std::all_of(os.begin(), os.end(), [](SimOwner* o) { return o->joined(); });
  });
}

std::vector<SimNode*> Scenario::nodes() const {
  std::vector<SimNode*> out;
  std::copy_if(all_nodes_.begin(), all_nodes_.end(), std::back_inserter(out),
               [](SimNode* node) { return node->alive(); });
  return out;
}

std::vector<SimOwner*> Scenario::owners() const {
  std::vector<SimOwner*> out;
  std::copy_if(all_owners_.begin(), all_owners_.end(), std::back_inserter(out),
               [](SimOwner* owner) { return owner->alive(); });
  return out;
}

SimNode& Scenario::random_node() {
  auto alive = nodes();
  if (alive.empty()) violation("no node is left");
  return *alive[world_.rng.below(alive.size())];
}

// ---- time

void Scenario::run_for(int64_t us) {
  bool over = false;
  world_.clock.after(us, "run for", 0, [&over] { over = true; });
  while (!over) world_.clock.step();
}

void Scenario::run_until(const char* what, const std::function<bool()>& done, int64_t limit_us) {
  int64_t limit = now_us() + limit_us;
  while (!done()) {
    if (!world_.clock.step()) violation(fmt::format("{}: nothing happens any more", what));
    if (now_us() > limit)
      violation(fmt::format("{}: not within {} ms. {}\n{}", what, limit_us / 1000, not_idle(),
                            world_.ledger.describe_pending(10)));
  }
}

void Scenario::at_random_times(double per_second, int64_t until_us, const char* what,
                               std::function<void()> event) {
  if (per_second <= 0) return;
  int64_t at_us =
      now_us() + 1 +
      static_cast<int64_t>(world_.rng.uniform() * 2 * static_cast<double>(kSecond) / per_second);
  if (at_us >= until_us) return;
  world_.clock.at(at_us, what, 0, [this, per_second, until_us, what, event] {
    event();
    at_random_times(per_second, until_us, what, event);
  });
}

void Scenario::chaos(const Chaos& chaos, int64_t us) {
  int64_t until = now_us() + us;
  at_random_times(chaos.worker_kills, until, "kill worker", [this] { kill_random_worker(); });
  at_random_times(chaos.node_kills, until, "kill node",
                  [this, chaos] { kill_random_node(chaos.spare_driver_nodes); });
  at_random_times(chaos.connection_breaks, until, "break connection",
                  [this] { break_random_connection(); });
  at_random_times(chaos.head_crashes, until, "crash head",
                  [this, chaos] { restart_head(world_.between(1, chaos.head_down_max_us)); });
  at_random_times(chaos.driver_kills, until, "kill driver", [this] {
    auto alive = owners();
    if (!alive.empty()) kill_owner(*alive[world_.rng.below(alive.size())]);
  });
  at_random_times(chaos.partitions, until, "partition", [this, chaos, until] {
    std::vector<SimNode*> group;
    for (SimNode* node : nodes()) {
      if (world_.rng.chance(0.3)) group.push_back(node);
    }
    partition(group, world_.rng.uniform());
    world_.clock.at(std::min(until, now_us() + world_.between(1, chaos.partition_max_us)), "heal",
                    0, [this] { heal(); });
  });
  run_for(us);
  heal();
  if (!world_.head) start_head();
}

// ---- finish

std::string Scenario::not_idle() const {
  for (SimOwner* owner : owners()) {
    if (owner->pending() > 0)
      return fmt::format("driver #{} has {} pending tasks{}", owner->number(), owner->pending(),
                         owner->unfinished_actors());
    if (owner->has_leases()) return fmt::format("driver #{} keeps leases", owner->number());
  }
  if (!world_.head) return "the head is down";
  for (SimNode* node : nodes()) {
    if (std::string why = node->busy(); !why.empty())
      return fmt::format("node #{}: {}", node->number(), why);
    const head::NodeState* seen = world_.head->core().view().cluster().find(node->id());
    if (!seen || !seen->usable())
      return fmt::format("the head has no connection to node #{}", node->number());
    if (!(head::Cluster::free_now(*seen) == node->core().view().resources().available()))
      return fmt::format("the head believes that node #{} has {} free, it has {}", node->number(),
                         head::Cluster::free_now(*seen).to_string(),
                         node->core().view().resources().available().to_string());
    if (!seen->waiting.demands.empty())
      return fmt::format("the head believes that something waits at node #{}", node->number());
    for (const auto& [id, worker] : node->core().view().pool().all()) {
      // A head that does not know a node any more ends the jobs of its drivers, which live on.
      if (worker->state == node::WorkerState::kDriver) continue;
      if (worker->job.is_nil() || world_.head->core().view().jobs().running(worker->job)) continue;
      if (!worker->outlives_job || !world_.head->core().view().actors().any_of_job(worker->job))
        return fmt::format("node #{} keeps a worker of job {}, whose driver has left",
                           node->number(), worker->job.hex());
    }
  }
  for (const auto& [id, node] : world_.head->core().view().cluster().nodes()) {
    if (node.alive() && !world_.nodes.contains(id))
      return fmt::format("the head believes that node {} is alive", id.hex().substr(0, 8));
  }
  for (const auto& [id, actor] : world_.head->core().view().actors().all()) {
    size_t living = world_.ledger.actor(id).living.size();
    if (actor.phase == head::Actor::Phase::kAlive && living != 1)
      return fmt::format("actor {} is alive at the head and in {} processes", id.hex(), living);
    if (actor.dead() && living != 0)
      return fmt::format("actor {} is dead at the head and lives in {} processes", id.hex(),
                         living);
  }
  for (const SimOwner* owner : all_owners_) {
    if (!owner->alive() && owner->joined() &&
        world_.head->core().view().jobs().running(owner->job()))
      return fmt::format("the job of driver #{}, which has ended, runs for the head",
                         owner->number());
  }
  for (const auto& [number, job] : world_.head->core().view().jobs().all()) {
    const JobId id = JobId::from_binary(job.job_id());
    auto has_it = [&id](const SimOwner* owner) { return owner->joined() && owner->job() == id; };
    if (world_.head->core().view().jobs().running(id) && std::ranges::none_of(owners(), has_it))
      return fmt::format("job {} runs for the head, and no driver has it", number);
  }
  if (std::string why = world_.links.untold(); !why.empty()) return why;
  return not_on_disk();
}

// A head that starts now would know what this one knows: a record that the disk refused is written
// again.
std::string Scenario::not_on_disk() const {
  const head::HeadView& view = world_.head->core().view();
  auto stored = [this](const char* table, const std::string& key) -> std::optional<std::string> {
    auto records = disk_.tables.find(table);
    if (records == disk_.tables.end()) return std::nullopt;
    auto record = records->second.find(key);
    return record == records->second.end() ? std::nullopt : std::optional(record->second);
  };
  for (const auto& [number, job] : view.jobs().all()) {
    if (stored(head::table::kJobs, job.job_id()) != view.jobs().record(job.job_id()))
      return fmt::format("the disk has another record of job {}", number);
  }
  for (const auto& [id, actor] : view.actors().all()) {
    if (stored(head::table::kActors, id.binary()) != head::actor_record(view.actors(), id.binary()))
      return fmt::format("the disk has another record of actor {}", id.hex());
  }
  return "";
}

void Scenario::finish(int64_t limit_us) {
  auto no_tasks = [this] {
    auto alive = owners();
    return std::all_of(alive.begin(), alive.end(),
                       [](SimOwner* owner) { return owner->pending() == 0; });
  };
  run_until("all tasks end", no_tasks, limit_us);
  if (world_.ledger.pending() != 0)
    violation(fmt::format("{} tasks were forgotten:\n{}", world_.ledger.pending(),
                          world_.ledger.describe_pending(10)));
  // Checked only every 100 ms, because not_idle() looks at everything.
  int64_t limit = now_us() + 30 * kSecond;
  for (std::string why = not_idle(); !why.empty(); why = not_idle()) {
    if (now_us() > limit) violation("does not come to rest: " + why);
    run_for(100 * kMs);
  }
}

// ---- faults

void Scenario::kill_worker(SimWorker& worker) {
  world_.ledger.process_fault();
  worker.die({true, 0, SIGKILL, ""});
}

bool Scenario::kill_random_worker() {
  std::vector<SimWorker*> busy;
  for (SimNode* node : nodes()) {
    for (SimWorker* worker : node->workers()) {
      if (worker->load() > 0 || worker->is_actor() || world_.rng.chance(0.1))
        busy.push_back(worker);
    }
  }
  if (busy.empty()) return false;
  kill_worker(*busy[world_.rng.below(busy.size())]);
  return true;
}

void Scenario::kill_node(SimNode& node) {
  if (world_.rng.chance(0.5)) {
    node.crash();
  } else {
    node.kill_manager();
  }
}

bool Scenario::kill_random_node(bool spare_driver_nodes) {
  std::vector<SimNode*> candidates = nodes();
  if (spare_driver_nodes) {
    for (SimOwner* owner : owners()) std::erase(candidates, &owner->node());
  }
  if (candidates.size() < 2) return false;
  kill_node(*candidates[world_.rng.below(candidates.size())]);
  return true;
}

void Scenario::crash_head() {
  if (!world_.head) return;
  ++head_crashes_;
  world_.ledger.daemon_fault();
  world_.head->crash();
}

void Scenario::start_head() {
  if (world_.head) return;
  // A supervisor starts it again.
  auto again = [this] {
    world_.clock.after(100 * kMs, "start head again", 0, [this] { start_head(); });
  };
  world_.adopt(std::make_unique<SimHead>(world_, disk_, again));
}

void Scenario::restart_head(int64_t down_us) {
  crash_head();
  world_.clock.after(down_us, "start head", 0, [this] { start_head(); });
}

void Scenario::break_random_connection() { world_.network.break_random(); }

void Scenario::partition(const std::vector<SimNode*>& group, double broken_connections) {
  std::set<int> hosts;
  for (SimNode* node : group) hosts.insert(node->host());
  world_.ledger.network_fault();
  world_.network.partition(std::move(hosts), broken_connections);
}

void Scenario::kill_owner(SimOwner& owner) { owner.crash(); }

void Scenario::fail_spawns(double part) {
  if (part > 0) world_.ledger.spawn_fault();
  world_.spawn_failures = part;
}

std::string Scenario::summary() const {
  const Ledger::Totals& t = world_.ledger.totals();
  std::string failures;
  for (const auto& [code, count] : world_.ledger.failures_by_code())
    failures += fmt::format(" {}={}", code, count);
  return fmt::format(
      "seed {}: {} events in {:.3f} virtual s, trace {:016x}\n"
      "tasks {} ({} of them actor calls): {} succeeded, {} failed{}, {} gone with their driver; {} "
      "executions, {} reruns not charged, {} overlapping runs\n"
      "{} worker deaths, {} nodes lost, {} connections broken, {} head crashes, {} actor starts; "
      "{} nodes left\n",
      world_.seed, world_.clock.events(), static_cast<double>(now_us()) / 1e6, hash(), t.submitted,
      t.calls, t.succeeded, t.failed, failures, t.abandoned, t.executions, t.reruns_not_charged,
      t.overlapping_runs, t.workers_died, nodes_killed_, world_.network.broken(), head_crashes_,
      t.actor_starts, nodes().size());
}

}  // namespace rt::sim
