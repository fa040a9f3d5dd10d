// sim [--seed N] [--nodes N] [--owners N] [--events N]: a long random run. Prints the seed first
// and a summary last; aborts on a violation.
//
// sim --seeds N [--seed N] [--only PROGRAM]: N random graphs of tasks (graphs.h), N random programs
// with placement groups (group_workload.h), N clusters that lose parts (churn.h), N programs of
// copies between stores (copies.h), N clusters whose owners compete (shares.h), N programs of
// generators (streams.h), N of references (borrows.h), N of clients of the head (records.h), N of
// clients of one store (arenas.h) and N of a store that hangs now and then (watches.h) instead,
// each from a seed of its own.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/sim/arenas.h"
#include "tests/sim/borrows.h"
#include "tests/sim/churn.h"
#include "tests/sim/copies.h"
#include "tests/sim/graphs.h"
#include "tests/sim/group_workload.h"
#include "tests/sim/records.h"
#include "tests/sim/shares.h"
#include "tests/sim/streams.h"
#include "tests/sim/watches.h"
#include "tests/sim/workload.h"

namespace {

int usage() {
  std::fprintf(stderr,
               "usage: sim [--seed N] [--nodes N] [--owners N] [--events N]\n"
               "       sim --seeds N [--seed N] [--only PROGRAM]\n"
               "PROGRAM: graphs, groups, churn, copies, shares, streams, borrows, records, arenas "
               "or watches\n");
  return 2;
}

void run_programs(const char* what, std::string (*run)(uint64_t seed), uint64_t first,
                  uint64_t count) {
  std::string summary;
  for (uint64_t seed = first; seed < first + count; ++seed) summary = run(seed);
  std::printf("%llu %s ran, the last one was\n%s", static_cast<unsigned long long>(count), what,
              summary.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  using namespace rt::sim;
  uint64_t seed = rt::Rng::from_system().next() % 1'000'000, events = 1'000'000, seeds = 0;
  int nodes = 50, owners = 10;
  std::string_view only;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    char* end = nullptr;
    if (i + 1 >= argc) return usage();
    if (flag == "--only") {
      only = argv[++i];
      constexpr std::string_view kPrograms[] = {"graphs", "groups",  "churn",   "copies",
                                                "shares", "streams", "borrows", "records",
                                                "arenas", "watches"};
      if (std::ranges::find(kPrograms, only) == std::end(kPrograms)) return usage();
      continue;
    }
    uint64_t value = std::strtoull(argv[++i], &end, 10);
    if (*end != '\0') return usage();
    if (flag == "--seed")
      seed = value;
    else if (flag == "--nodes")
      nodes = static_cast<int>(value);
    else if (flag == "--owners")
      owners = static_cast<int>(value);
    else if (flag == "--events")
      events = value;
    else if (flag == "--seeds")
      seeds = value;
    else
      return usage();
  }
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  if (seeds > 0) {
    auto wanted = [only](std::string_view kind) { return only.empty() || only == kind; };
    if (wanted("graphs")) run_programs("graphs", run_graphs, seed, seeds);
    if (wanted("groups")) run_programs("programs with groups", run_groups, seed, seeds);
    if (wanted("churn")) run_programs("clusters that lose parts", run_churn, seed, seeds);
    if (wanted("shares")) run_programs("clusters with too few workers", run_shares, seed, seeds);
    if (wanted("copies")) run_programs("programs of copies", run_copies, seed, seeds);
    if (wanted("streams")) run_programs("programs of generators", run_streams, seed, seeds);
    if (wanted("borrows")) run_programs("programs of references", run_borrows, seed, seeds);
    if (wanted("records")) run_programs("programs of records", run_records, seed, seeds);
    if (wanted("arenas")) run_programs("programs of clients of a store", run_arenas, seed, seeds);
    if (wanted("watches")) run_programs("stores that hang", run_watches, seed, seeds);
    return 0;
  }
  Scenario s({.seed = seed, .nodes = nodes, .node_resources = {{"CPU", 2}}});
  for (int i = 0; i < owners; ++i) s.add_owner();
  s.wait_ready();
  while (s.world().clock.events() < events) {
    // One round: replace what was lost, run with faults under load, then let everything come to
    // rest.
    while (static_cast<int>(s.nodes().size()) < nodes) s.add_node({{"CPU", 2}});
    while (static_cast<int>(s.owners().size()) < owners) s.add_owner();
    s.wait_ready();
    submit_random(s, 50 * nodes, 2 * kSecond);  // about twice what the nodes can do
    const auto actors = random_actors(s, owners, s.now_us() + 2 * kSecond);
    s.chaos({.worker_kills = 0.5 * nodes,
             .node_kills = 0.02 * nodes,
             .connection_breaks = 1.0 * nodes,
             .head_crashes = 0.3,
             .partitions = 0.3,
             .driver_kills = 0.3,
             .spare_driver_nodes = false},
            3 * kSecond);
    // Actors keep a CPU as long as they live, and tasks that want both of a node would wait for
    // ever once each node has one.
    s.run_for(2 * kSecond);
    for (const auto& actor : actors) {
      if (!s.owners().empty()) s.owners().front()->kill_actor(actor, true);
    }
    s.finish();
  }
  std::printf("%s", s.summary().c_str());
}
