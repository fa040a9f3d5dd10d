#include "daemons/head/http/log_frames.h"

#include "common/base/utf8.h"

namespace rt::head {

std::vector<std::string> LogFrames::add(std::string_view data) {
  pending_ += data;
  size_t tail = 0;
  const std::string text = valid_utf8(pending_, &tail);
  pending_.erase(0, pending_.size() - tail);
  std::vector<std::string> frames;
  size_t from = 0, lines = 0, chars = 0;
  for (size_t i = 0; i < text.size();) {
    lines += text[i] == '\n';
    ++chars;
    for (++i; i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;) ++i;
    if (lines < kMaxLines && chars < kMaxChars) continue;
    frames.push_back(text.substr(from, i - from));
    from = i;
    lines = chars = 0;
  }
  if (from < text.size()) frames.push_back(text.substr(from));
  return frames;
}

std::string LogFrames::rest() {
  std::string text = valid_utf8(pending_);
  pending_.clear();
  return text;
}

}  // namespace rt::head
