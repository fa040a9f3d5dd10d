// Reads a log file piece by piece, also while it grows and is rotated, and filters the pieces: the
// lines of one task, markers, colour codes. Does no I/O of its own: the caller passes a function
// that reads. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/proto/node_manager.pb.h"

namespace rt::state {

// Reads the file `name` from `offset` on. max_bytes 0 means as many bytes as one answer holds.
using ReadPiece = std::function<Result<proto::ReadLogFileReply>(const std::string& name,
                                                                int64_t offset, int64_t max_bytes)>;

// Reads the last lines of a file and then what is appended to it. When the file is renamed to
// NAME.1 and begun anew, the reader finishes the old file and goes on in the new one. If the source
// reads across the rotated pieces of a log, a line is inserted that says how many bytes rotation
// has removed before the reader got to them.
class LogTail {
 public:
  // `lines` is the number of last lines to begin with; -1 means the whole file. `count_markers`
  // says whether marker lines count. If they do not, `find_writer` makes begin() also look for the
  // writer(), up to 4 MiB before the end.
  LogTail(std::string name, int64_t lines, ReadPiece read, bool count_markers = true,
          bool find_writer = true)
      : name_(std::move(name)),
        lines_(lines),
        count_markers_(count_markers),
        find_writer_(find_writer && !count_markers),
        read_(std::move(read)) {}

  // Finds the first byte to read, unless that has been done. Returns kNotFound if there is no such
  // file.
  Status begin();
  // Returns the next piece, or an empty string if there is nothing more for now. Calls begin().
  Result<std::string> next();
  // Replaces begin(): reads the file with this inode from `offset` on.
  void begin_at(uint64_t inode, int64_t offset) {
    inode_ = inode;
    offset_ = offset;
    begun_ = true;
  }
  const std::string& name() const { return name_; }
  // The following are valid after begin(). The file that is being read, and the next byte in it:
  uint64_t inode() const { return inode_; }
  int64_t offset() const { return offset_; }
  // Whether there are lines before the first byte that next() returns, and the function or actor
  // class that wrote the last of them, or "" if no marker was found near enough.
  bool cut() const { return cut_; }
  const std::string& writer() const { return writer_; }

 private:
  // Reads on in the file that was renamed to NAME.1; empty when nothing is left there.
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

// Extracts from a worker's log the lines of one attempt of a task: those between its ":task_id:"
// marker and the next marker. Markers are left out.
class TaskLines {
 public:
  // `inside` is the value that inside() had where an earlier reader stopped.
  TaskLines(const std::string& task_hex, int64_t attempt, bool inside = false);
  // Takes the next bytes of the log and returns the task's lines that are complete.
  std::string feed(std::string_view data);
  // At the end of the log, returns the task's last line if it has no newline.
  std::string finish();
  // The number of bytes that feed() has taken but not decided about.
  size_t held() const { return partial_.size(); }
  bool inside() const { return inside_; }

 private:
  void line(std::string_view text, std::string* out);

  std::string marker_, partial_;
  bool inside_;
};

// Whether `line` is a marker: a line that workers write into their logs to tell which job,
// function, actor or task the following lines belong to.
bool is_marker(std::string_view line);
// The function or actor class that a marker line names, which may be empty; nullopt for lines that
// name neither.
std::optional<std::string> marked_writer(std::string_view line);

// Removes marker lines, which may arrive in several pieces.
class WithoutMarkers {
 public:
  // `inside` is the value that inside() had where an earlier reader stopped.
  explicit WithoutMarkers(bool inside = false) : inside_(inside) {}
  // Takes the next bytes of the log and returns them without markers.
  std::string feed(std::string_view data);
  // At the end of the log, returns what feed() held back as the possible beginning of a marker.
  std::string finish();
  size_t held() const { return held_.size(); }
  bool inside() const { return inside_; }

 private:
  std::string held_;
  bool inside_;  // Whether the next byte is in the middle of a line that is no marker.
};

// Removes the colour codes of terminals, which may arrive in several pieces.
class WithoutColours {
 public:
  std::string feed(std::string_view data);

 private:
  enum class At { kText, kEscape, kCode } at_ = At::kText;
};

// The last `lines` lines of `text`; all of them for -1.
std::string last_lines(std::string text, int64_t lines);

// The category by which Ray lists a log file, according to its name: "worker_out", "raylet", ...
std::string log_category(const std::string& name);

}  // namespace rt::state
