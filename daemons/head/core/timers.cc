#include "daemons/head/core/timers.h"

namespace rt::head {

Timers::Id Timers::at(int64_t steady_us, Task task) {
  Id id = ++last_;
  due_.emplace(std::pair{steady_us, id}, std::move(task));
  times_.emplace(id, steady_us);
  return id;
}

void Timers::cancel(Id& id) {
  auto it = times_.find(id);
  id = 0;
  if (it == times_.end()) return;
  due_.erase({it->second, it->first});
  times_.erase(it);
}

void Timers::run_due(Now now) {
  while (!due_.empty() && due_.begin()->first.first <= now.steady_us) {
    auto node = due_.extract(due_.begin());
    times_.erase(node.key().second);
    node.mapped()(now);
  }
}

}  // namespace rt::head
