// The frames of this process that may not leave yet, such as replies to the owners of tasks, in a
// line for each receiver. Decides when each of them leaves.
//
// A frame that ends a hold of its receiver, as a reply does, waits for the borrows that this
// process registered before. One that lends references waits until their owners count the receiver.
// Frames to one receiver leave in the order in which they came. "Reference counting" in
// docs/tasks.md has the rule.
//
// Pure: guarded by the worker's mutex.
#pragma once

#include <cstdint>
#include <deque>
#include <iterator>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "common/base/status.h"
#include "worker/core/ref_table.h"

namespace rt::worker {

// A frame as its line knows it. Those that send frames derive theirs from this.
struct HeldFrame {
  uint64_t after = 0;  // The registration that it waits for; 0: none.
  int unasked = 0;     // Owners of what it lends that have not answered.
};

// `To` points to a receiver. A null one, such as the node-manager of an actor that answers to its
// creation, has a line like any other.
template <class To, class Frame>
class FrameLines {
 public:
  // Whether such a frame may leave at once. `refs` has the borrows of this process. Cheap when
  // nothing is held.
  bool passes(const RefTable& refs, const To& to, const HeldFrame& frame) const {
    return is_free(refs, frame) && (lines_.empty() || !places_.contains(std::to_address(to)));
  }
  void hold(const To& to, std::shared_ptr<Frame> frame) {
    auto [place, added] = places_.try_emplace(std::to_address(to));
    if (added) place->second = lines_.insert(lines_.end(), {to, {}});
    place->second->frames.push_back(std::move(frame));
  }
  // Passes each frame that has nothing to wait for any more to write(to, frame), and drops those
  // whose receiver is_open() is false of. To be called after each of the things that frames wait
  // for.
  template <class IsOpen, class Write>
  void release(const RefTable& refs, IsOpen is_open, Write write) {
    for (auto line = lines_.begin(); line != lines_.end();) {
      auto& [to, frames] = *line;
      while (!frames.empty() && is_open(to) && is_free(refs, *frames.front())) {
        const std::shared_ptr<Frame> frame = std::move(frames.front());
        frames.pop_front();
        write(to, *frame);
      }
      const bool over = frames.empty() || !is_open(to);
      if (over) places_.erase(std::to_address(to));
      line = over ? lines_.erase(line) : std::next(line);
    }
  }

  bool empty() const { return lines_.empty(); }
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [to, frames] : lines_) {
      for (const auto& frame : frames) f(to, *frame);
    }
  }
  void check_invariants() const {
    RT_CHECK(places_.size() == lines_.size());
    for (const Line& line : lines_) {
      RT_CHECK(!line.frames.empty());
      RT_CHECK(&*places_.at(std::to_address(line.to)) == &line);
    }
  }

 private:
  struct Line {
    To to;
    std::deque<std::shared_ptr<Frame>> frames;
  };

  static bool is_free(const RefTable& refs, const HeldFrame& frame) {
    return frame.unasked == 0 && refs.confirmed(frame.after);
  }

  // In the order in which they began to wait, so that equal runs release in the same order.
  std::list<Line> lines_;
  std::unordered_map<const void*, typename std::list<Line>::iterator> places_;
};

}  // namespace rt::worker
