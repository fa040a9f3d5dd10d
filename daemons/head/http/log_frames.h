// Cuts a growing log into pieces for WebSocket frames. Each piece has whole characters, at most 10
// lines and 20,000 characters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rt::head {

class LogFrames {
 public:
  static constexpr size_t kMaxLines = 10, kMaxChars = 20'000;

  // Takes data that was read and returns the pieces that can be sent. Keeps back the beginning of
  // a character whose rest is still missing.
  std::vector<std::string> add(std::string_view data);
  // Returns what was kept back. Call it at the log's end.
  std::string rest();

 private:
  std::string pending_;
};

}  // namespace rt::head
