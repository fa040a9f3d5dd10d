// A growing log as pieces for WebSocket frames: whole characters, at most 10 lines and 20,000
// characters each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rt::head {

class LogFrames {
 public:
  static constexpr size_t kMaxLines = 10, kMaxChars = 20'000;

  // What can be sent now that `data` has been read. The beginning of a character whose rest is not
  // here yet is kept back.
  std::vector<std::string> add(std::string_view data);
  // The log is over: what was kept back.
  std::string rest();

 private:
  std::string pending_;
};

}  // namespace rt::head
