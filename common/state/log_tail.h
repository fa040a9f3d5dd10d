// A log file of some node, read piece by piece, and what is taken out of the pieces. Free of I/O:
// where the bytes come from is the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/proto/node_manager.pb.h"

namespace rt::state {

// Of a file by this name, from this byte on; max_bytes: 0 for as many as one answer takes.
using ReadPiece = std::function<Result<proto::ReadLogFileReply>(const std::string& name,
                                                                int64_t offset, int64_t max_bytes)>;

// Reads a file from one of its last lines on, and goes on with what is appended. A file that is
// renamed NAME.1 and begun anew is followed. Where the source reads across the pieces of a log, a
// line says how much rotation has removed of what was to come.
class LogTail {
 public:
  // `lines`: -1 for all. `count_markers`: whether markers are lines as well. `find_writer`: where
  // they are not, to look for writer(), some MB back if need be.
  LogTail(std::string name, int64_t lines, ReadPiece read, bool count_markers = true,
          bool find_writer = true)
      : name_(std::move(name)),
        lines_(lines),
        count_markers_(count_markers),
        find_writer_(find_writer && !count_markers),
        read_(std::move(read)) {}

  // Finds the first byte, if that was not done. kNotFound: there is no such file.
  Status begin();
  // The next piece; empty: there is no more for now.
  Result<std::string> next();
  // Instead of begin(): from this byte of this file on.
  void begin_at(uint64_t inode, int64_t offset) {
    inode_ = inode;
    offset_ = offset;
    begun_ = true;
  }
  const std::string& name() const { return name_; }
  // Once it has begun: the file that is read, and its next byte.
  uint64_t inode() const { return inode_; }
  int64_t offset() const { return offset_; }
  // Once it has begun: whether there are lines before the first byte; the function or actor class
  // that wrote last before it, as far as its marker is near.
  bool cut() const { return cut_; }
  const std::string& writer() const { return writer_; }

 private:
  // What was appended before the file was renamed. Empty: nothing more of that.
  Result<std::string> rest_of_renamed();

  std::string name_;
  int64_t lines_;
  bool count_markers_, find_writer_;
  ReadPiece read_;
  bool begun_ = false, cut_ = false;
  std::string writer_;
  int64_t offset_ = 0;
  uint64_t inode_ = 0;
};

// Takes out of a worker's log the lines of one attempt of a task: those between its ":task_id:"
// marker and the next one. Markers are left out.
class TaskLines {
 public:
  // `inside`: of the one that another reading goes on for.
  TaskLines(const std::string& task_hex, int64_t attempt, bool inside = false);
  // What belongs to the task, of whole lines.
  std::string feed(std::string_view data);
  // The line that has no end.
  std::string finish();
  size_t held() const { return partial_.size(); }
  bool inside() const { return inside_; }

 private:
  void line(std::string_view text, std::string* out);

  std::string marker_, partial_;
  bool inside_;
};

// A line of a worker's log that says whose the next ones are: the job's, the function's, the
// actor's, the task's.
bool is_marker(std::string_view line);
// The function or actor class that a marker names; empty for none. Nothing: it names no such.
std::optional<std::string> marked_writer(std::string_view line);

// Leaves out markers; one may come in several pieces.
class WithoutMarkers {
 public:
  // `inside`: of the one that another reading goes on for.
  explicit WithoutMarkers(bool inside = false) : inside_(inside) {}
  std::string feed(std::string_view data);
  // What may have been the beginning of one.
  std::string finish();
  size_t held() const { return held_.size(); }
  bool inside() const { return inside_; }

 private:
  std::string held_;
  bool inside_;  // a line that is none
};

// Leaves out the colour codes of terminals; one may come in two pieces.
class WithoutColours {
 public:
  std::string feed(std::string_view data);

 private:
  enum class At { kText, kEscape, kCode } at_ = At::kText;
};

// The last `lines` lines of what comes. All of them for -1; bounded by those lines.
std::string last_lines(std::string text, int64_t lines);

// The kind of a log file, by its name: "worker_out", "raylet", ...
std::string log_category(const std::string& name);

}  // namespace rt::state
