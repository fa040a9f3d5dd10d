#include "observability/state/log_tail.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "common/base/log_names.h"

namespace rt::state {
namespace {

constexpr int64_t kBackwardBytes = 256 << 10, kMostForWriter = 4 << 20;
// The longest marker. So much of the following piece is kept to recognize a marker that begins at
// the end of a piece.
constexpr size_t kMarkerBytes = 1024;

}  // namespace

bool is_marker(std::string_view line) {
  return line.starts_with(":job_id:") || line.starts_with(":task_name:") ||
         line.starts_with(":actor_name:") || line.starts_with(":task_id:");
}

std::optional<std::string> marked_writer(std::string_view line) {
  if (!line.starts_with(":task_name:") && !line.starts_with(":actor_name:")) return std::nullopt;
  line.remove_prefix(line.find(':', 1) + 1);
  return std::string(line.substr(0, line.find('\n')));
}

// Reads backwards from the end until it has found the beginnings of enough lines and, if the writer
// is wanted, the last marker before them that names one.
Status LogTail::begin() {
  if (begun_) return {};
  // An offset beyond the end: the answer has no data, only size and inode.
  RT_ASSIGN(auto first, read_(name_, std::numeric_limits<int64_t>::max(), 1));
  inode_ = first.inode();
  begun_ = true;
  if (lines_ < 0) return {};
  const int64_t end = offset_ = first.size();
  int64_t begins = first.begins();
  int64_t wanted = lines_;
  std::optional<std::string> writer;
  std::string after;  // The beginning of the piece that was read before and lies behind this one.
  for (int64_t from = end; from > begins;) {
    if (cut_ && (!find_writer_ || writer || end - from > kMostForWriter)) break;
    int64_t until = from;
    from = std::max<int64_t>(begins, until - kBackwardBytes);
    RT_ASSIGN(auto piece, read_(name_, from, until - from));
    // Rotation has removed more in the meantime.
    if (piece.begins() > begins) {
      begins = piece.begins();
      from = std::max(from, begins);
      if (from >= until) break;
    }
    const size_t size = std::min(piece.data().size(), static_cast<size_t>(until - from));
    const std::string text = piece.data().substr(0, size) + after;
    for (size_t at = size;;) {
      size_t newline = at > 0 ? text.rfind('\n', at - 1) : std::string::npos;
      if (newline == std::string::npos && from > begins) break;
      size_t begins = newline == std::string::npos ? 0 : newline + 1;
      std::string_view line = std::string_view(text).substr(begins);
      if (from + static_cast<int64_t>(begins) == end) {
        // The newline at the end of the file begins no line.
      } else if (!count_markers_ && is_marker(line)) {
        if (find_writer_ && wanted == 0 && !writer) writer = marked_writer(line);
      } else if (wanted == 0) {
        cut_ = true;
      } else if (--wanted == 0) {
        offset_ = from + static_cast<int64_t>(begins);
      }
      if (newline == std::string::npos || (cut_ && (!find_writer_ || writer))) break;
      at = newline;
    }
    after = text.substr(0, kMarkerBytes);
  }
  if (wanted > 0) offset_ = 0;
  writer_ = writer.value_or("");
  return {};
}

Result<std::string> LogTail::rest_of_renamed() {
  auto renamed = read_(name_ + ".1", offset_, 0);
  if (!renamed || renamed->inode() != inode_) return std::string();
  return std::move(*renamed->mutable_data());
}

Result<std::string> LogTail::next() {
  RT_TRY(begin());
  RT_ASSIGN(auto piece, read_(name_, offset_, 0));
  if (piece.inode() != inode_) {
    RT_ASSIGN(std::string rest, rest_of_renamed());
    if (!rest.empty()) {
      offset_ += static_cast<int64_t>(rest.size());
      return rest;
    }
    inode_ = piece.inode();
    offset_ = 0;
    RT_ASSIGN(piece, read_(name_, 0, 0));
  } else if (piece.size() < offset_) {
    // The file was truncated.
    offset_ = piece.size();
  }
  std::string text;
  if (piece.begins() > offset_) {
    text = removed_note(piece.begins() - offset_, offset_ > 0);
    offset_ = piece.begins();
  }
  offset_ += static_cast<int64_t>(piece.data().size());
  if (text.empty()) return std::move(*piece.mutable_data());
  return text + piece.data();
}

TaskLines::TaskLines(const std::string& task_hex, int64_t attempt, bool inside)
    : marker_(fmt::format(":task_id:{} {}", task_hex, attempt)), inside_(inside) {}

void TaskLines::line(std::string_view text, std::string* out) {
  if (is_marker(text)) {
    // The task's lines end at any other marker, not only at that of another task.
    inside_ = text == marker_;
  } else if (inside_) {
    out->append(text).push_back('\n');
  }
}

std::string TaskLines::feed(std::string_view data) {
  std::string out;
  while (!data.empty()) {
    size_t end = data.find('\n');
    partial_.append(data.substr(0, end));
    if (end == std::string_view::npos) break;
    line(partial_, &out);
    partial_.clear();
    data.remove_prefix(end + 1);
  }
  return out;
}

std::string TaskLines::finish() {
  std::string out;
  if (!partial_.empty()) line(std::exchange(partial_, {}), &out);
  return out;
}

std::string WithoutMarkers::feed(std::string_view data) {
  std::string out;
  while (!data.empty()) {
    size_t end = data.find('\n');
    std::string_view piece = data.substr(0, end == std::string_view::npos ? end : end + 1);
    data.remove_prefix(piece.size());
    const bool whole = piece.back() == '\n';
    if (!inside_ && (!held_.empty() || piece[0] == ':')) {
      held_ += piece;
      if (whole || held_.size() > kMarkerBytes) {
        inside_ = !whole;
        if (std::string line = std::exchange(held_, {}); !is_marker(line)) out += line;
      }
      continue;
    }
    out += piece;
    inside_ = !whole;
  }
  return out;
}

std::string WithoutMarkers::finish() {
  std::string rest = std::exchange(held_, {});
  return is_marker(rest) ? "" : rest;
}

std::string WithoutColours::feed(std::string_view data) {
  std::string out;
  out.reserve(data.size());
  for (char c : data) {
    if (at_ == At::kText) {
      if (c == '\x1b')
        at_ = At::kEscape;
      else
        out += c;
    } else if (at_ == At::kEscape) {
      at_ = c == '[' ? At::kCode : At::kText;
    } else if (c >= '@' && c <= '~') {
      at_ = At::kText;
    }
  }
  return out;
}

std::string last_lines(std::string text, int64_t lines) {
  if (lines < 0) return text;
  size_t at = text.size();
  for (int64_t left = lines + (text.ends_with('\n') ? 1 : 0); left > 0; --left) {
    if (at == 0) return text;
    size_t newline = text.rfind('\n', at - 1);
    if (newline == std::string::npos) return text;
    at = newline;
  }
  return text.substr(std::min(text.size(), at + 1));
}

std::string log_category(const std::string& name) {
  if (name.starts_with("worker-"))
    return name.find(".err") != std::string::npos ? "worker_err" : "worker_out";
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kPrefixes = {
      {{"job-driver-", "driver"},
       {"ray-head", "gcs_server"},
       {"head", "gcs_server"},
       {"gcs_server", "gcs_server"},
       {"ray-node-manager", "raylet"},
       {"node-manager", "raylet"},
       {"raylet", "raylet"},
       {"dashboard", "dashboard"},
       {"ray-object-store", "object_store"},
       {"object-store", "object_store"}}};
  for (const auto& [prefix, category] : kPrefixes) {
    if (name.starts_with(prefix)) return std::string(category);
  }
  return "internal";
}

}  // namespace rt::state
