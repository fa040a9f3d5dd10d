// Whether the node's object store still answers. A store that was stopped or hangs keeps its
// connections, so that nothing else tells. The service asks it when tick() says so and reports the
// answers; one question at a time, so that a store that hangs for long is not buried in them.
#pragma once

#include <cstdint>

#include "common/base/clock.h"

namespace rt::node {

class StoreWatch {
 public:
  // `interval_us` passes between an answer and the next question. A store that leaves a question
  // open for `limit_us` hangs.
  StoreWatch(int64_t interval_us, int64_t limit_us)
      : interval_us_(interval_us), limit_us_(limit_us) {}

  struct Turn {
    bool ask = false;      // the store is to be asked now
    bool changed = false;  // hangs() has changed
  };
  Turn tick(Now now);
  // The store has answered the open question; the same as tick() otherwise.
  Turn answered(Now now);
  // When tick() has something to decide, steady clock; -1 while only an answer can change anything.
  int64_t next_tick_us() const;

  bool hangs() const { return hangs_; }
  // When the question that is open was asked. Valid while the store hangs.
  Now silent_since() const { return asked_; }

 private:
  const int64_t interval_us_, limit_us_;
  bool open_ = false, hangs_ = false;
  Now asked_;           // when the open question was asked
  int64_t due_us_ = 0;  // when the next one is due; steady clock
};

}  // namespace rt::node
