// sim [--seed N] [--nodes N] [--owners N] [--events N]: a long random run. Prints the seed first
// and a summary last; aborts on a violation.
//
// sim --seeds N [--seed N] [--only PROGRAM]: runs each program of kPrograms, or one of them, N
// times instead, each time from a seed of its own.
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
#include "tests/sim/links.h"
#include "tests/sim/owners.h"
#include "tests/sim/records.h"
#include "tests/sim/shares.h"
#include "tests/sim/streams.h"
#include "tests/sim/watches.h"
#include "tests/sim/workload.h"

namespace {

using namespace rt::sim;

// The random programs. Their headers say what each does.
struct Program {
  std::string_view name;
  const char* plural;
  std::string (*run)(uint64_t seed);
};
constexpr Program kPrograms[] = {
    {"graphs", "graphs", run_graphs},
    {"groups", "programs with groups", run_groups},
    {"churn", "clusters that lose parts", run_churn},
    {"owners", "programs of owners", run_owners},
    {"shares", "clusters with too few workers", run_shares},
    {"links", "clusters whose links break", run_links},
    {"copies", "programs of copies", run_copies},
    {"streams", "programs of generators", run_streams},
    {"borrows", "programs of references", run_borrows},
    {"records", "programs of records", run_records},
    {"arenas", "programs of clients of a store", run_arenas},
    {"watches", "stores that hang", run_watches},
};

int usage() {
  std::fprintf(stderr,
               "usage: sim [--seed N] [--nodes N] [--owners N] [--events N]\n"
               "       sim --seeds N [--seed N] [--only PROGRAM]\n"
               "PROGRAM is one of:");
  for (const Program& program : kPrograms)
    std::fprintf(stderr, " %.*s", static_cast<int>(program.name.size()), program.name.data());
  std::fprintf(stderr, "\n");
  return 2;
}

void run_program(const Program& program, uint64_t first, uint64_t count) {
  std::string summary;
  for (uint64_t seed = first; seed < first + count; ++seed) summary = program.run(seed);
  std::printf("%llu %s ran, the last one was\n%s", static_cast<unsigned long long>(count),
              program.plural, summary.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seed = rt::Rng::from_system().next() % 1'000'000, events = 1'000'000, seeds = 0;
  int nodes = 50, owners = 10;
  std::string_view only;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    char* end = nullptr;
    if (i + 1 >= argc) return usage();
    if (flag == "--only") {
      only = argv[++i];
      if (std::ranges::find(kPrograms, only, &Program::name) == std::end(kPrograms)) return usage();
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
    for (const Program& program : kPrograms) {
      if (only.empty() || only == program.name) run_program(program, seed, seeds);
    }
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
