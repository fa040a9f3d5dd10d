// Cuts the bytes of one worker log into lines and sorts them by the markers between them
// (":job_id:", ":task_name:", ":actor_name:"; ":task_id:" is not for those who read along).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/proto/head.pb.h"

namespace rt::node {

class LogLineReader {
 public:
  explicit LogLineReader(size_t max_line_bytes) : max_line_(max_line_bytes) {}

  // Appends the lines that `data` completes to `out`, one LogLines per run of equal job and name;
  // only those two and the lines are filled. Lines longer than the bound come in pieces; the
  // newline after a piece is no empty line. What is no UTF-8 is replaced, as readers would replace
  // it: no message could carry it.
  void feed(std::string_view data, std::vector<proto::LogLines>* out);
  // What has no newline yet: at the end of the process, or when nothing follows for a while
  // (`ended` is false: the beginning of a character at its end waits).
  void finish(std::vector<proto::LogLines>* out, bool ended);
  // Text is there that has no newline yet, and it is not the beginning of a marker, or of a
  // character.
  bool has_partial() const;
  // For lines before any ":job_id:" marker: binary id.
  void set_job(const std::string& job_id) { default_job_ = job_id; }

 private:
  void line(std::string_view text, std::vector<proto::LogLines>* out);

  size_t max_line_;
  bool begun_ = false;  // a piece of the line was handed out
  std::string partial_, job_, default_job_, name_;
};

}  // namespace rt::node
