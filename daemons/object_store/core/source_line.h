// The nodes that have a copy of an object, in the order in which they are asked. A source that does
// not answer is asked again, because a node or a store that hangs may go on; one whose process has
// ended refuses, and one whose node is gone is not asked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

class SourceLine {
 public:
  SourceLine() = default;
  SourceLine(std::vector<Source> sources, SteadyNow now) : heard_us_(now.steady_us) {
    for (Source& source : sources) entries_.push_back({std::move(source)});
  }

  // The source that is asked now, or null when all of them have failed.
  const Source* current() const {
    return next_ < entries_.size() ? &entries_[next_].source : nullptr;
  }
  size_t size() const { return entries_.size(); }
  // Notes that a source has answered.
  void heard(SteadyNow now) { heard_us_ = now.steady_us; }
  // Notes that the current source did not answer.
  void unanswered() { entries_[next_].unanswered = true; }
  // Goes on to the next source whose node is not gone.
  void advance() {
    next_++;
    pass_gone();
  }
  // Notes that a node is gone. The current source stays until advance(), also when it is there.
  void node_gone(const NodeId& node) {
    for (Entry& entry : entries_) entry.gone |= entry.source.node == node;
  }
  bool is_current_gone() const { return entries_[next_].gone; }
  // Before the first source is asked: passes over those whose nodes are gone.
  void pass_gone() {
    while (next_ < entries_.size() && entries_[next_].gone) next_++;
  }
  // Whether a source may have the object and did not answer when it was last asked.
  bool may_answer_yet() const {
    return std::ranges::any_of(entries_,
                               [](const Entry& entry) { return entry.unanswered && !entry.gone; });
  }
  // Starts again with the first source if one of them may answer yet and some source has answered
  // within `patience_us`. Returns whether it does.
  bool start_again(int64_t patience_us, SteadyNow now) {
    if (!may_answer_yet() || now.steady_us - heard_us_ >= patience_us) return false;
    next_ = 0;
    for (Entry& entry : entries_) entry.unanswered = false;
    pass_gone();
    return true;
  }

 private:
  struct Entry {
    Source source;
    bool unanswered = false;
    bool gone = false;
  };

  std::vector<Entry> entries_;
  size_t next_ = 0;
  // When a source answered last, or when the fetch was launched.
  int64_t heard_us_ = 0;
};

// "ip:port", as for people.
std::string address_of(const Source& source);

}  // namespace rt::store
