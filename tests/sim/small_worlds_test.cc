// The worlds that are smaller than a cluster, each with a few fixed seeds.
#include <gtest/gtest.h>

#include "tests/sim/arenas.h"
#include "tests/sim/borrows.h"
#include "tests/sim/seeds.h"
#include "tests/sim/streams.h"
#include "tests/sim/watches.h"

namespace rt::sim {
namespace {

TEST(SmallWorlds, GeneratorsInTheGroupsOfAnActor) {
  FOR_SEEDS(100) { run_streams(seed); }
}

TEST(SmallWorlds, ReferencesThatProcessesLendEachOther) {
  int read_out = 0;
  FOR_SEEDS(1000) { read_out += !run_borrows(seed).starts_with("0 "); }
  if (!std::getenv("SIM_SEED")) {
    EXPECT_GT(read_out, 100);
  }
}

TEST(SmallWorlds, ClientsOfOneStore) {
  FOR_SEEDS(120) { run_arenas(seed); }
}

TEST(SmallWorlds, AStoreThatHangsAndProcessesThatCount) {
  FOR_SEEDS(40) { run_watches(seed); }
}

}  // namespace
}  // namespace rt::sim
