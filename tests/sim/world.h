// The state that all processes of one simulation share.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "common/base/ids.h"
#include "common/base/rng.h"
#include "common/config/settings.h"
#include "tests/sim/job_ledger.h"
#include "tests/sim/kv_ledger.h"
#include "tests/sim/ledger.h"
#include "tests/sim/link_ledger.h"
#include "tests/sim/network.h"
#include "tests/sim/virtual_clock.h"

namespace rt::sim {

class SimHead;
class SimNode;
class SimStore;
class SimWorker;

struct World {
  World(uint64_t seed, const NetworkOptions& options)
      : seed(seed), rng(seed), network(clock, seed ^ 0x5eedull, options) {}

  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(rng.below(static_cast<uint64_t>(high - low + 1)));
  }

  // Keeps a process until the end of the simulation, so that messages on their way to it still
  // find the object after the process has ended.
  template <class T>
  T* adopt(std::unique_ptr<T> process) {
    T* raw = process.get();
    processes.push_back(std::move(process));
    return raw;
  }

  const uint64_t seed;
  Rng rng;
  VirtualClock clock;
  Network network;
  Ledger ledger;
  KvLedger values;
  JobLedger jobs;
  LinkLedger links;
  Settings settings;
  // Whether owners let tasks run where their arguments are.
  bool owners_seek_arguments = false;
  // Whether the code of some tasks keeps references that came with their arguments.
  bool tasks_keep_references = false;
  double spawn_failures = 0;  // share of the starts of workers that fail
  // The system has taken back all of a process that was killed within this time.
  int64_t reaped_within_us = 3000;

  std::vector<std::unique_ptr<Process>> processes;

  // The processes that are alive.
  SimHead* head = nullptr;  // null while the head is down
  std::map<NodeId, SimNode*> nodes;
  std::map<WorkerId, SimWorker*> workers;

  std::map<NodeId, SimStore*> stores;  // also those that have ended
};

inline constexpr int kHeadHost = 0;

}  // namespace rt::sim
