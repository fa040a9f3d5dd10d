// A process that runs tasks whose arguments are in the stores of other nodes. Each task gets all
// of its arguments or waits in the store's line; some wait for another task before they end.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "tests/sim/arena_user.h"

namespace rt::sim {

class ArenaWorker;

struct ArenaTask {
  std::vector<ObjectId> arguments;
  int64_t runs_us = 0;
  // The task does not end before this one has ended, which another worker runs.
  std::shared_ptr<const ArenaTask> helper;
  ArenaWorker* helped_by = nullptr;
};

class ArenaWorker final : public ArenaUser {
 public:
  // Asks for the arguments of so many tasks at once.
  ArenaWorker(Arena& arena, int host, ArenaStore& store, size_t ahead)
      : ArenaUser(arena, host, store), ahead_(ahead) {}

  void run(std::shared_ptr<const ArenaTask> task, std::function<void()> ended);
  bool is_idle() const { return line_.empty(); }
  std::string describe() const;

 private:
  struct Waiting {
    std::shared_ptr<const ArenaTask> task;
    std::function<void()> ended;
    store::Ticket ticket = 0;  // 0: its arguments have not been asked for
    bool is_here = false;
  };

  void ask();
  void got(store::Ticket ticket, const std::vector<store::GetAnswer>& answers);
  void run_first();
  void wait_for_helper();
  void end_first();

  const size_t ahead_;
  std::deque<Waiting> line_;  // the first one runs once it has its arguments
  bool is_running_ = false;
  store::Ticket last_ticket_ = 0;
};

}  // namespace rt::sim
