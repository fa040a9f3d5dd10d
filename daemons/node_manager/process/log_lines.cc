#include "daemons/node_manager/process/log_lines.h"

#include "common/base/ids.h"
#include "common/base/utf8.h"

namespace rt::node {
namespace {

bool take_marker(std::string_view& text, std::string_view marker) {
  if (!text.starts_with(marker)) return false;
  text.remove_prefix(marker.size());
  return true;
}

}  // namespace

void LogLineReader::feed(std::string_view data, std::vector<proto::LogLines>* out) {
  while (!data.empty()) {
    size_t end = data.find('\n');
    if (end == std::string_view::npos) {
      partial_.append(data);
      data = {};
    } else {
      if (partial_.empty()) {
        if (end > 0 || !begun_) line(data.substr(0, end), out);
      } else {
        partial_.append(data.substr(0, end));
        line(partial_, out);
        partial_.clear();
      }
      data.remove_prefix(end + 1);
      begun_ = false;
    }
    if (partial_.size() >= max_line_) {
      begun_ = true;
      line(partial_, out);
      partial_.clear();
    }
  }
}

void LogLineReader::finish(std::vector<proto::LogLines>* out, bool ended) {
  size_t tail = 0;
  if (!ended) valid_utf8(partial_, &tail);
  std::string_view whole(partial_.data(), partial_.size() - tail);
  if (!whole.empty()) {
    begun_ = true;
    line(whole, out);
  }
  partial_.erase(0, whole.size());
}

bool LogLineReader::has_partial() const {
  if (partial_.empty() || partial_[0] == ':') return false;
  size_t tail = 0;
  if (partial_.size() < 4) valid_utf8(partial_, &tail);
  return tail < partial_.size();
}

void LogLineReader::line(std::string_view text, std::vector<proto::LogLines>* out) {
  if (text.starts_with(':')) {
    std::string_view rest = text;
    if (take_marker(rest, ":job_id:")) {
      JobId job = JobId::from_hex(rest);
      if (!job.is_nil()) job_ = job.binary();
      return;
    }
    if (take_marker(rest, ":task_name:") || take_marker(rest, ":actor_name:")) {
      name_ = valid_utf8(rest);
      return;
    }
    if (take_marker(rest, ":task_id:")) return;  // only for searches for the lines of one task
  }
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  if (out->empty() || out->back().job_id() != job() || out->back().name() != name_) {
    out->emplace_back();
    out->back().set_job_id(job());
    out->back().set_name(name_);
  }
  while (text.size() > max_line_) {
    size_t cut = 0;
    std::string piece = valid_utf8(text.substr(0, max_line_), &cut);
    if (cut == max_line_) cut = 0;
    out->back().add_lines(std::move(piece));
    text.remove_prefix(max_line_ - cut);
  }
  out->back().add_lines(valid_utf8(text));
}

}  // namespace rt::node
