#include "tests/sim/arena_worker.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "tests/sim/ledger.h"

namespace rt::sim {

void ArenaWorker::run(std::shared_ptr<const ArenaTask> task, std::function<void()> ended) {
  line_.push_back({std::move(task), std::move(ended)});
  ask();
}

std::string ArenaWorker::describe() const {
  std::string text = fmt::format("worker #{} has {} tasks:", number(), line_.size());
  for (const Waiting& waiting : line_)
    text += fmt::format(" {} arguments{}{}", waiting.task->arguments.size(),
                        waiting.ticket == 0 ? ""
                        : waiting.is_here   ? " here"
                                            : " asked for",
                        waiting.task->helper ? " and a helper," : ",");
  return text + (is_running_ ? " and runs" : "");
}

void ArenaWorker::ask() {
  for (size_t i = 0; i < std::min(ahead_, line_.size()); ++i) {
    Waiting& next = line_[i];
    if (next.ticket != 0) continue;
    next.ticket = ++last_ticket_;
    std::vector<store::WantedItem> wanted;
    for (const ObjectId& id : next.task->arguments)
      wanted.push_back(
          {id, {{NodeId::random(arena_.world.rng), "", 0, arena_.remotes.at(id).size}}});
    get(wanted, -1, next.ticket,
        [this, ticket = next.ticket](const std::vector<store::GetAnswer>& answers) {
          got(ticket, answers);
        });
  }
}

void ArenaWorker::got(store::Ticket ticket, const std::vector<store::GetAnswer>& answers) {
  if (!std::ranges::all_of(answers, &store::GetAnswer::found))
    violation(fmt::format("seed {}: a task does not get its arguments", arena_.world.seed));
  for (Waiting& waiting : line_) {
    if (waiting.ticket == ticket) waiting.is_here = true;
  }
  run_first();
}

void ArenaWorker::run_first() {
  if (is_running_ || line_.empty() || !line_.front().is_here) return;
  is_running_ = true;
  const ArenaTask& task = *line_.front().task;
  after(task.runs_us, "task runs",
        [this] { line_.front().task->helper ? wait_for_helper() : end_first(); });
}

void ArenaWorker::wait_for_helper() {
  const ArenaTask& task = *line_.front().task;
  update_tasks({}, true);
  task.helped_by->run(task.helper, [this] {
    after(arena_.between(10, 1'000), "result arrives", [this] {
      update_tasks({}, false);
      after(line_.front().task->runs_us, "task runs on", [this] { end_first(); });
    });
  });
}

void ArenaWorker::end_first() {
  const Waiting ended = std::move(line_.front());
  line_.pop_front();
  is_running_ = false;
  const std::vector<ObjectId>& ids = ended.task->arguments;
  release(ids, arena_.chance(0.5) ? ids : std::vector<ObjectId>{});
  update_tasks({ended.ticket}, {});
  ended.ended();
  ask();
  run_first();
}

}  // namespace rt::sim
