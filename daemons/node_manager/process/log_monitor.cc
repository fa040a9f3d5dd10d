#include "daemons/node_manager/process/log_monitor.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "common/base/log.h"

namespace rt::node {
namespace {
constexpr size_t kLogReadBytes = 256 * 1024;
constexpr int kPiecesPerBatch = 16;

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }
}  // namespace

LogMonitor::LogMonitor(net::Loop& loop, const Settings& settings, const std::string& directory,
                       Publish publish)
    : loop_(loop), settings_(settings), publish_(std::move(publish)), directory_(directory) {
  inotify_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (inotify_ >= 0 && ::inotify_add_watch(inotify_, directory_.c_str(), IN_MODIFY) < 0) {
    ::close(inotify_);
    inotify_ = -1;
  }
  if (inotify_ >= 0) {
    watch_ = loop_.watch_readable(inotify_, [this] {
      take_changes();
      if (!dirty_.empty()) schedule(settings_.log_batch_interval_ms * 1000);
    });
  } else {
    RT_INFO("no inotify on {}: worker logs are polled", directory_);
  }
}

LogMonitor::~LogMonitor() {
  watch_.reset();
  if (timer_) loop_.cancel(timer_);
  if (inotify_ >= 0) ::close(inotify_);
  for (auto& [name, file] : files_) {
    if (file.fd >= 0) ::close(file.fd);
  }
}

void LogMonitor::add(const WorkerId& worker, int pid, const std::string& out_path,
                     const std::string& err_path) {
  for (bool is_stderr : {false, true}) {
    const std::string& path = is_stderr ? err_path : out_path;
    std::string name = base_name(path);
    auto [it, added] = files_.try_emplace(name, static_cast<size_t>(settings_.log_line_max_bytes));
    if (!added) continue;
    it->second.path = path;
    it->second.worker = worker;
    it->second.pid = pid;
    it->second.is_stderr = is_stderr;
    dirty_.insert(name);  // the worker may have written before the file was known here
  }
  schedule(settings_.log_batch_interval_ms * 1000);
}

void LogMonitor::set_job(const WorkerId& worker, const std::string& job_id) {
  for (auto& [name, file] : files_) {
    if (file.worker == worker) file.reader.set_job(job_id);
  }
}

void LogMonitor::remove(const WorkerId& worker) {
  proto::HeadEvent event;
  for (auto it = files_.begin(); it != files_.end();) {
    File& file = it->second;
    if (file.worker != worker) {
      ++it;
      continue;
    }
    for (int piece = 0; piece < kPiecesPerBatch && read_some(file, &event); ++piece) {}
    std::vector<proto::LogLines> rest;
    file.reader.finish(&rest, true);
    fill(file, rest, &event);
    if (file.fd >= 0) ::close(file.fd);
    dirty_.erase(it->first);
    partial_.erase(it->first);
    it = files_.erase(it);
  }
  publish(event);
}

void LogMonitor::take_changes() {
  if (inotify_ < 0) {
    for (const auto& [name, file] : files_) dirty_.insert(name);
    return;
  }
  alignas(inotify_event) char buffer[16384];
  ssize_t n;
  while ((n = ::read(inotify_, buffer, sizeof buffer)) > 0) {
    for (char* at = buffer; at < buffer + n;) {
      auto* event = reinterpret_cast<inotify_event*>(at);
      at += sizeof(inotify_event) + event->len;
      if (event->mask & IN_Q_OVERFLOW) {
        for (const auto& [name, file] : files_) dirty_.insert(name);
      } else if (event->len > 0 && files_.contains(event->name)) {
        dirty_.insert(event->name);
      }
    }
  }
}

void LogMonitor::schedule(int64_t delay_us) {
  if (timer_) return;
  timer_ = loop_.run_after(delay_us, [this] {
    timer_ = 0;
    next_batch();
  });
}

void LogMonitor::next_batch() {
  if (inotify_ < 0) take_changes();
  proto::HeadEvent event;
  std::set<std::string> waiting = partial_;
  for (const std::string& name : read_dirty(&event)) waiting.erase(name);
  // Publish an incomplete line if nothing has followed since the last batch, such as a prompt.
  for (const std::string& name : waiting) hand_out_partial(name, &event);
  end_batch(event);
}

void LogMonitor::flush(const std::string& job_id, std::function<void()> done) {
  take_changes();
  flushes_.push_back({job_id, std::move(done), dirty_});
  if (timer_) loop_.cancel(std::exchange(timer_, 0));
  proto::HeadEvent event;
  read_dirty(&event);
  end_batch(event);
}

std::set<std::string> LogMonitor::read_dirty(proto::HeadEvent* event) {
  std::set<std::string> grown, more;
  for (const std::string& name : dirty_) {
    auto it = files_.find(name);
    if (it == files_.end()) continue;
    bool again = true;
    int64_t before = it->second.offset;
    for (int piece = 0; piece < kPiecesPerBatch && again; ++piece)
      again = read_some(it->second, event);
    if (again) more.insert(name);
    if (it->second.offset == before) continue;
    grown.insert(name);
    partial_.erase(name);
    if (it->second.reader.has_partial()) partial_.insert(name);
  }
  dirty_ = std::move(more);
  return grown;
}

void LogMonitor::end_batch(proto::HeadEvent& event) {
  std::vector<std::function<void()>> done;
  for (auto flush = flushes_.begin(); flush != flushes_.end();) {
    std::erase_if(flush->files, [&](const std::string& name) { return !dirty_.contains(name); });
    if (!flush->files.empty()) {
      ++flush;
      continue;
    }
    for (const std::string& name : std::set(partial_)) {
      if (files_.at(name).reader.job() == flush->job_id) hand_out_partial(name, &event);
    }
    done.push_back(std::move(flush->done));
    flush = flushes_.erase(flush);
  }
  publish(event);
  if (!dirty_.empty()) {
    schedule(0);
  } else if (!partial_.empty() || (inotify_ < 0 && !files_.empty())) {
    schedule(settings_.log_batch_interval_ms * 1000);
  }
  for (const auto& answer : done) answer();
}

void LogMonitor::hand_out_partial(const std::string& name, proto::HeadEvent* event) {
  File& file = files_.at(name);
  std::vector<proto::LogLines> rest;
  file.reader.finish(&rest, false);
  fill(file, rest, event);
  partial_.erase(name);
}

bool LogMonitor::read_some(File& file, proto::HeadEvent* event) {
  if (file.fd < 0) file.fd = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.fd < 0) return false;
  std::string data(kLogReadBytes, 0);
  ssize_t n = ::pread(file.fd, data.data(), data.size(), file.offset);
  if (n <= 0) return n == 0 && follow_rotation(file);
  file.offset += n;
  std::vector<proto::LogLines> lines;
  file.reader.feed(std::string_view(data.data(), static_cast<size_t>(n)), &lines);
  fill(file, lines, event);
  return static_cast<size_t>(n) == data.size() || follow_rotation(file);
}

bool LogMonitor::follow_rotation(File& file) {
  struct stat read{}, named{};
  if (::fstat(file.fd, &read) != 0 || ::stat(file.path.c_str(), &named) != 0 ||
      read.st_ino == named.st_ino)
    return false;
  if (read.st_size > file.offset) return true;  // first read the rest of the old file
  ::close(file.fd);
  file.fd = -1;
  file.offset = 0;
  return true;
}

void LogMonitor::fill(const File& file, std::vector<proto::LogLines>& lines,
                      proto::HeadEvent* event) {
  for (proto::LogLines& entry : lines) {
    entry.set_pid(file.pid);
    entry.set_is_stderr(file.is_stderr);
    *event->add_logs() = std::move(entry);
  }
}

void LogMonitor::publish(proto::HeadEvent& event) {
  if (event.logs_size() > 0) publish_(event);
}

}  // namespace rt::node
