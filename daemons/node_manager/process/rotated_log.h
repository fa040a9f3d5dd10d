// A log that is rotated like the logs of workers: FILE is being written, and the earlier pieces
// are FILE.1 (the newest) to FILE.N. For readers it is one stream: an offset counts from the first
// byte ever written, no matter what has been renamed or removed since. Not thread-safe.
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
    // A piece that has reached this size is rotated at its next end of line; 0: never.
    int64_t max_bytes = 512 << 20;
    int64_t backups = 5;  // earlier pieces that are kept; 0: nothing is rotated
  };
  // Reads RAY_ROTATION_MAX_BYTES and RAY_ROTATION_BACKUP_COUNT from `env`, or else from the
  // environment of this process. Returns kInvalid, naming the variable, if one is not a number.
  static Result<Limits> limits_of(const std::map<std::string, std::string>& env);

  // Removes an earlier log at `path` with all its pieces, and starts a new one.
  static Result<std::unique_ptr<RotatedLog>> create(const std::string& path, const Limits& limits);

  // Bytes that a full or failing disk does not take are lost; once writing works again, a line in
  // the log says how many. A file that cannot be rotated keeps growing.
  void append(std::string_view data);
  // Afterwards append() discards its data; reading still works.
  void close() { file_.reset(); }
  // Removes the log at `path` with all its pieces.
  static void remove(const std::string& path);

  struct Chunk {
    std::string data;
    // Offset of the first byte of `data`. Greater than requested if the requested bytes are gone.
    int64_t offset = 0;
  };
  // Returns `max_bytes` from `offset` on, or fewer before the end of the log and before a missing
  // piece. Empty data means that there is nothing more.
  Result<Chunk> read(int64_t offset, int64_t max_bytes) const;
  // Returns the last `max_bytes` of the log.
  std::string tail(int64_t max_bytes) const;
  int64_t begins() const { return pieces_.front().begin; }
  int64_t size() const { return pieces_.back().end(); }
  // Differs from the id of every other log of this process and from every inode number, so that
  // readers notice when a new log has taken the place of an old one.
  uint64_t id() const { return id_; }

 private:
  struct Piece {
    int64_t begin = 0, size = 0;
    int64_t number = 0;  // the file is FILE.number, or FILE for 0
    int64_t end() const { return begin + size; }
  };

  RotatedLog(std::string path, const Limits& limits);
  std::string name(int64_t number) const;
  bool open_file();
  // Returns how many bytes of `data` belong to the current piece.
  size_t part_of(std::string_view data) const;
  // Returns how many bytes could be written.
  size_t write(std::string_view data);
  // Returns false and sets errno if the current piece could not be rotated and goes on.
  bool rotate();

  const std::string path_;
  const Limits limits_;
  const uint64_t id_;
  Fd file_;
  std::deque<Piece> pieces_;  // oldest first; the last is FILE
  int64_t rotate_at_;         // size at which the current piece is rotated; 0: never
  size_t lost_ = 0;           // bytes that could not be written
};

}  // namespace rt::node
