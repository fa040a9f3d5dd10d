// A log of pieces, rotated as workers rotate theirs: FILE, and what was FILE before as FILE.1, the
// newest, to FILE.N. For readers it is one stream: an offset counts from the first byte that was
// ever written, whatever was renamed or removed since. One thread uses it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/fd.h"
#include "common/base/status.h"

namespace rt::node {

class RotatedLog {
 public:
  struct Limits {
    int64_t max_bytes = 512 << 20;  // a piece that has them ends with its line; 0: none ever does
    int64_t backups = 5;            // older pieces that are kept; 0: none, and nothing is rotated
  };
  // RAY_ROTATION_MAX_BYTES and RAY_ROTATION_BACKUP_COUNT of `env`, else of this process. kInvalid
  // names the one that is no number.
  static Result<Limits> limits_of(const std::map<std::string, std::string>& env);

  // Nothing of an earlier log of this name is left.
  static Result<std::unique_ptr<RotatedLog>> create(const std::string& path, const Limits& limits);

  // A full or failing disk costs bytes; once there is room again, a line says how many. A file that
  // cannot be rotated goes on growing.
  void append(std::string_view data);
  // No more comes.
  void close() { file_.reset(); }
  // With all its pieces.
  static void remove(const std::string& path);

  struct Chunk {
    std::string data;
    int64_t offset =
        0;  // of its first byte: behind the one that was asked for when that was removed
  };
  // `max_bytes`; fewer at the end, and before what somebody has removed. Empty: there is no more.
  Result<Chunk> read(int64_t offset, int64_t max_bytes) const;
  // The last bytes.
  std::string tail(int64_t max_bytes) const;
  int64_t begins() const { return pieces_.front().begin; }
  int64_t size() const { return pieces_.back().end(); }
  // No other log of this process has it, nor has a file.
  uint64_t id() const { return id_; }

 private:
  struct Piece {
    int64_t begin = 0, size = 0;
    int64_t number = 0;  // FILE.number; 0: FILE
    int64_t end() const { return begin + size; }
  };

  RotatedLog(std::string path, const Limits& limits);
  std::string name(int64_t number) const;
  bool open_file();
  // How much of `data` belongs to this piece.
  size_t part_of(std::string_view data) const;
  size_t write(std::string_view data);
  bool rotate();

  const std::string path_;
  const Limits limits_;
  const uint64_t id_;
  Fd file_;
  std::deque<Piece> pieces_;  // oldest first; the last is FILE
  int64_t rotate_at_;
  size_t lost_ = 0;  // bytes that could not be written
};

}  // namespace rt::node
