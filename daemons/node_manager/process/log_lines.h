// Cuts the bytes of one worker log into lines and labels them by the markers that the worker
// writes between them (":job_id:", ":task_name:", ":actor_name:"; the marker ":task_id:" is
// skipped).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/proto/head.pb.h"

namespace rt::node {

class LogLineReader {
 public:
  explicit LogLineReader(size_t max_line_bytes) : max_line_(max_line_bytes) {}

  // Appends the lines that `data` completes to `out`, one LogLines per run of equal job and name,
  // of which only job, name and lines are filled. A line longer than the bound comes in pieces,
  // and the newline after its last piece does not make an empty line. Invalid UTF-8 is replaced,
  // because drivers print the lines.
  void feed(std::string_view data, std::vector<proto::LogLines>* out);
  // Hands out the text that has no newline yet: because the process has `ended`, or because
  // nothing has followed for a while. In the latter case an incomplete character at the end is
  // kept.
  void finish(std::vector<proto::LogLines>* out, bool ended);
  // True if there is text without a newline that is worth showing: neither the beginning of a
  // marker nor only part of a character.
  bool has_partial() const;
  // Sets the job (binary id) of lines that come before any ":job_id:" marker.
  void set_job(const std::string& job_id) { default_job_ = job_id; }
  // The job (binary id) that the text without a newline belongs to.
  const std::string& job() const { return job_.empty() ? default_job_ : job_; }

 private:
  void line(std::string_view text, std::vector<proto::LogLines>* out);

  size_t max_line_;
  bool begun_ = false;  // a piece of the current line was handed out
  std::string partial_, job_, default_job_, name_;
};

}  // namespace rt::node
