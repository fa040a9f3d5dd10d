// The nodes that have a copy of an object, in the order in which they are asked. A source whose
// node does not answer is asked again, because a node that hangs may go on; a node that has ended
// refuses.
#pragma once

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
  SourceLine(std::vector<Source> sources, SteadyNow now)
      : sources_(std::move(sources)), heard_us_(now.steady_us) {}

  // The source that is asked now, or null when all of them have failed.
  const Source* current() const { return next_ < sources_.size() ? &sources_[next_] : nullptr; }
  size_t size() const { return sources_.size(); }
  // Notes that a source has answered.
  void heard(SteadyNow now) { heard_us_ = now.steady_us; }
  // Notes that the node of the current source did not answer.
  void unanswered() { unanswered_ = true; }
  void advance() { next_++; }
  // Starts again with the first source if one of them may answer yet: its node did not answer this
  // time, and some source has answered within `patience_us`. Returns whether it does.
  bool start_again(int64_t patience_us, SteadyNow now) {
    if (!unanswered_ || now.steady_us - heard_us_ >= patience_us) return false;
    next_ = 0;
    unanswered_ = false;
    return true;
  }

 private:
  std::vector<Source> sources_;
  size_t next_ = 0;
  // When a source answered last, or when the fetch was launched.
  int64_t heard_us_ = 0;
  bool unanswered_ = false;
};

// "ip:port", as for people.
std::string address_of(const Source& source);

}  // namespace rt::store
