#include "daemons/node_manager/core/store_watch.h"

namespace rt::node {

StoreWatch::Turn StoreWatch::tick(Now now) {
  Turn turn;
  if (!open_ && now.steady_us >= due_us_) {
    turn.ask = open_ = true;
    asked_ = now;
  } else if (open_ && !hangs_ && now.steady_us - asked_.steady_us >= limit_us_) {
    turn.changed = hangs_ = true;
  }
  return turn;
}

StoreWatch::Turn StoreWatch::answered(Now now) {
  const bool hung = hangs_;
  open_ = hangs_ = false;
  due_us_ = now.steady_us + interval_us_;
  Turn turn = tick(now);
  turn.changed = hung;
  return turn;
}

int64_t StoreWatch::next_tick_us() const {
  if (!open_) return due_us_;
  return hangs_ ? -1 : asked_.steady_us + limit_us_;
}

}  // namespace rt::node
