#include "cli/commands/logs_follow.h"

#include <fmt/core.h>

#include <map>
#include <set>
#include <thread>
#include <utility>

#include "cli/client/head_wait.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/base/log_names.h"

namespace rt::cli {
namespace {

// Looks for new files and prints what was appended to the known ones, in rounds. One thread.
class Follower {
 public:
  Follower(state::LogSource& source, const FollowLogs& what, const std::string& head_address)
      : source_(source), what_(what), wait_(head_address) {}

  Status run() {
    for (bool first = true;; first = false) {
      if (Status found = find_files(first); found) {
        wait_.found();
      } else {
        // While the head is away, files of nodes that are already connected are still read.
        RT_TRY(first ? found : missed(found.error()));
      }
      for (auto& [key, file] : files_) read(file);
      RT_TRY(flush_to_reader());
      std::this_thread::sleep_for(std::chrono::microseconds(what_.interval_us));
    }
  }

 private:
  struct File {
    state::LogTail tail;
    // `partial` is the beginning of a line whose end has not been read yet.
    std::string name, ip, node_id, partial;
    // Printed before the next lines; empty until the first line is printed.
    std::string prefix = "";
  };

  // Handles a failed or empty answer. After a restart of the head its nodes register one by one, so
  // an outage goes on while no node is known.
  Status missed(const Error& why) {
    return wait_.lost(wait_.waiting() && why.code == Code::kNotFound
                          ? make_error(Code::kUnavailable, why.message)
                          : why);
  }

  Status find_files(bool first) {
    if (source_.head_is_lost()) RT_TRY(source_.connect_again());
    RT_ASSIGN(auto nodes, source_.nodes());
    bool any = false;
    for (const proto::Node& node : nodes) {
      std::string id = to_hex(node.node_id());
      if (!node.alive() || (!what_.node_id.empty() && id != what_.node_id) ||
          (!what_.node_ip.empty() && node.ip() != what_.node_ip))
        continue;
      auto found = source_.files(node, what_.glob);
      if (!found) {
        complain(id, found.error());
        continue;
      }
      any = true;
      silent_.erase(id);
      std::set<std::string_view> names;
      for (const auto& file : *found) names.insert(file.name());
      for (const auto& file : *found) {
        if (file.is_directory() || files_.contains({id, file.name()})) continue;
        // A rotated file (FILE.1) is skipped if FILE is followed or matches as well: its tail reads
        // the old file to its end before it goes on in the new one.
        std::string_view before = rotated_from(file.name());
        if (names.contains(before) || files_.contains({id, std::string(before)})) continue;
        // Files that exist at the start show their last lines, files that appear later all lines.
        files_.emplace(std::pair(id, file.name()),
                       File{source_.tail(node, file.name(), first ? what_.lines : -1, what_.raw),
                            file.name(), node.ip(), id, ""});
      }
    }
    if (any) return {};
    return make_error(Code::kNotFound, "no living node of this cluster can be asked for its logs");
  }

  // Lines of workers get the prefix that drivers print, lines of other files the file's name.
  std::string prefix(const File& file, const std::string& writer) const {
    int64_t pid = what_.raw ? 0 : worker_log_pid(file.name);
    if (pid <= 0) return fmt::format("({}, ip={}) ", file.name, file.ip);
    return fmt::format("({}{}pid={}, ip={}) ", writer, writer.empty() ? "" : " ", pid, file.ip);
  }

  void print(File& file, const std::string& line) {
    if (!what_.raw && state::is_marker(line)) {
      if (auto writer = state::marked_writer(line)) file.prefix = prefix(file, *writer);
      return;
    }
    if (file.prefix.empty()) file.prefix = prefix(file, file.tail.writer());
    cli::print("{}{}\n", file.prefix, line);
  }

  void read(File& file) {
    for (;;) {
      auto piece = file.tail.next();
      // The file has been removed, or its next one is made in a moment.
      if (!piece && piece.error().code == Code::kNotFound) return;
      if (!piece) return complain(file.node_id, piece.error());
      if (piece->empty()) return;
      std::string_view rest = *piece;
      for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
        file.partial += rest.substr(0, end);
        print(file, std::exchange(file.partial, {}));
        rest.remove_prefix(end + 1);
      }
      file.partial += rest;
    }
  }

  // Warns about a node once, until it has answered again.
  void complain(const std::string& node_id, const Error& why) {
    if (silent_.insert(node_id).second)
      cli::print(stderr, "Warning: cannot read the logs of node {}: {}\n", node_id.substr(0, 8),
                 why.message);
  }

  state::LogSource& source_;
  const FollowLogs& what_;
  std::map<std::pair<std::string, std::string>, File> files_;  // By node id and name.
  std::set<std::string> silent_;  // The ids of nodes about which complain() has warned.
  HeadWait wait_;
};

}  // namespace

Status follow_logs(const state::Cluster& cluster, const FollowLogs& what) {
  RT_ASSIGN(auto source, state::LogSource::connect(cluster, what.timeout_us));
  return Follower(*source, what, cluster.head_address).run();
}

}  // namespace rt::cli
