#include "daemons/node_manager/process/rotated_log.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "common/base/environment.h"
#include "common/base/log.h"
#include "common/base/log_names.h"

namespace rt::node {
namespace {

constexpr uint64_t kNoInode = 1ULL << 63;  // beyond the inode numbers that file systems use

std::atomic<uint64_t> g_logs{0};  // logs created in this process; gives each one its id

Status read_limit(const std::map<std::string, std::string>& env, const char* name, int64_t* value) {
  auto it = env.find(name);
  const std::string text = it != env.end() ? it->second : environment(name);
  if (text.empty()) return {};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error == std::errc() && end == text.data() + text.size() && *value >= 0) return {};
  return make_error(Code::kInvalid, fmt::format("{} is '{}', but must be a whole number, 0 or more",
                                                name, text.substr(0, 100)));
}

}  // namespace

Result<RotatedLog::Limits> RotatedLog::limits_of(const std::map<std::string, std::string>& env) {
  Limits limits;
  RT_TRY(read_limit(env, "RAY_ROTATION_MAX_BYTES", &limits.max_bytes));
  RT_TRY(read_limit(env, "RAY_ROTATION_BACKUP_COUNT", &limits.backups));
  constexpr int64_t kMaxSize = 1LL << 60;  // so that sums of two sizes do not overflow
  limits.max_bytes = std::min(limits.max_bytes, kMaxSize);
  if (limits.backups == 0) limits.max_bytes = 0;
  return limits;
}

RotatedLog::RotatedLog(std::string path, const Limits& limits)
    : path_(std::move(path)),
      limits_(limits),
      id_(kNoInode + ++g_logs),
      pieces_(1),
      rotate_at_(limits.max_bytes) {}

Result<std::unique_ptr<RotatedLog>> RotatedLog::create(const std::string& path,
                                                       const Limits& limits) {
  remove(path);
  std::unique_ptr<RotatedLog> log(new RotatedLog(path, limits));
  if (!log->open_file()) return errno_error("cannot write " + path, errno);
  return log;
}

std::string RotatedLog::name(int64_t number) const {
  return number == 0 ? path_ : fmt::format("{}.{}", path_, number);
}

bool RotatedLog::open_file() {
  int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (fd >= 0) file_.reset(fd);
  return fd >= 0;
}

void RotatedLog::remove(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path whole(path);
  const std::string base = whole.filename();
  for (const auto& entry : std::filesystem::directory_iterator(whole.parent_path(), ignored)) {
    std::string name = entry.path().filename();
    if (name == base || rotated_from(name) == base) ::unlink(entry.path().c_str());
  }
}

size_t RotatedLog::part_of(std::string_view data) const {
  if (rotate_at_ == 0) return data.size();
  // A piece may exceed the limit to end with a whole line, but at most by the limit itself: a
  // longer line is cut.
  const int64_t size = pieces_.back().size, most = rotate_at_ + limits_.max_bytes - size;
  const size_t newline =
      data.find('\n', static_cast<size_t>(std::max<int64_t>(0, rotate_at_ - size - 1)));
  return std::min(newline == std::string_view::npos ? data.size() : newline + 1,
                  static_cast<size_t>(std::max<int64_t>(1, most)));
}

void RotatedLog::append(std::string_view data) {
  while (!data.empty() && file_.valid()) {
    const std::string_view part = data.substr(0, part_of(data));
    data.remove_prefix(part.size());
    if (lost_ > 0) {
      const std::string note =
          fmt::format("[{} bytes of output are missing here: they could not be written]\n", lost_);
      if (write(note) == note.size()) lost_ = 0;
    }
    lost_ += part.size() - (lost_ > 0 ? 0 : write(part));
    const int64_t size = pieces_.back().size;
    if (rotate_at_ == 0 || size < rotate_at_ ||
        (part.back() != '\n' && size < rotate_at_ + limits_.max_bytes))
      continue;
    rotate_at_ = limits_.max_bytes;
    if (!rotate()) {
      RT_WARN("cannot rotate {}: {}; it goes on growing", path_, std::strerror(errno));
      rotate_at_ += size;
    }
  }
}

size_t RotatedLog::write(std::string_view data) {
  size_t done = 0;
  while (done < data.size()) {
    ssize_t n = ::write(file_.get(), data.data() + done, data.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  Piece& piece = pieces_.back();
  piece.size += static_cast<int64_t>(done);
  struct stat now{};
  // If somebody has truncated the file, its remaining bytes are the last ones written.
  if (::fstat(file_.get(), &now) == 0 && now.st_size < piece.size) {
    piece.begin = piece.end() - now.st_size;
    piece.size = now.st_size;
  }
  return done;
}

bool RotatedLog::rotate() {
  // Rename the oldest piece first, so that each finds its next name free. A piece that somebody
  // has removed (ENOENT) is skipped.
  while (pieces_.front().number >= limits_.backups) {
    if (::unlink(name(pieces_.front().number).c_str()) != 0 && errno != ENOENT) return false;
    pieces_.pop_front();
  }
  for (Piece& piece : pieces_) {
    if (std::rename(name(piece.number).c_str(), name(piece.number + 1).c_str()) != 0 &&
        errno != ENOENT)
      return false;
    ++piece.number;
  }
  if (!open_file()) {
    int why = errno;
    if (std::rename(name(1).c_str(), path_.c_str()) == 0) pieces_.back().number = 0;
    errno = why;
    return false;
  }
  pieces_.push_back({pieces_.back().end(), 0, 0});
  return true;
}

Result<RotatedLog::Chunk> RotatedLog::read(int64_t offset, int64_t max_bytes) const {
  Chunk chunk{"", std::max(offset, size())};
  for (const Piece& piece : pieces_) {
    if (offset >= piece.end()) continue;
    if (!chunk.data.empty() && piece.begin > offset) break;  // a piece in between is missing
    const bool is_open = &piece == &pieces_.back() && file_.valid();
    Fd opened(is_open ? -1 : ::open(name(piece.number).c_str(), O_RDONLY | O_CLOEXEC));
    if (!is_open && !opened.valid() && errno == ENOENT) continue;  // somebody has removed it
    if (!is_open && !opened.valid()) return errno_error("cannot read " + name(piece.number), errno);
    const int64_t from = std::max(offset, piece.begin);
    const size_t before = chunk.data.size();
    chunk.data.resize(before +
                      static_cast<size_t>(std::clamp<int64_t>(
                          max_bytes - static_cast<int64_t>(before), 0, piece.end() - from)));
    ssize_t n = ::pread(is_open ? file_.get() : opened.get(), chunk.data.data() + before,
                        chunk.data.size() - before, from - piece.begin);
    if (n < 0) return errno_error("cannot read " + name(piece.number), errno);
    chunk.data.resize(before + static_cast<size_t>(n));
    if (before == 0 && n > 0) chunk.offset = from;
    offset = from + n;
    if (static_cast<int64_t>(chunk.data.size()) >= max_bytes) break;
  }
  return chunk;
}

std::string RotatedLog::tail(int64_t max_bytes) const {
  std::string text;
  for (int64_t at = std::max<int64_t>(0, size() - max_bytes);;) {
    auto chunk = read(at, max_bytes);
    if (!chunk || chunk->data.empty()) return text;
    text += chunk->data;
    at = chunk->offset + static_cast<int64_t>(chunk->data.size());
  }
}

}  // namespace rt::node
