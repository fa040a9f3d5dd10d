#include "launch/node/session.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "common/base/json_text.h"
#include "common/base/trusted_directory.h"
#include "common/base/utf8.h"
#include "common/net/address.h"
#include "common/net/probe.h"
#include "launch/node/internal.h"
#include "launch/node/spawn.h"
#include "launch/node/starter_line.h"

namespace rt::launch {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kAddressFile = "/ray_current_cluster";
constexpr const char* kPrivateAddressFile = "/head_address";  // In the session directory.
constexpr const char* kDefaultRoot = "/tmp/ray";
constexpr const char* kLatestLink = "/session_latest";
// Logs and the first pages of SQLite need this much soon; a place without it is as good as full.
constexpr off_t kProbeBytes = 1 << 20;
constexpr int kReachTimeoutMs = 2000;

// The root is a directory like /tmp: anyone may add a session, only its owner may remove it.
constexpr DirectoryUse kRootUse = {"the session's files",
                                   "choose another place with --temp-dir or RAY_TMPDIR", 01777};

// /tmp/ray, or /tmp/ray-<uid> when that exists and belongs to another user.
std::string default_root() {
  struct stat info;
  bool usable = lstat(kDefaultRoot, &info) != 0 || info.st_uid == geteuid();
  return usable ? kDefaultRoot : fmt::format("{}-{}", kDefaultRoot, geteuid());
}

Status probe(const std::string& directory) {
  std::string path = directory + "/.probe";
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return cannot_use(directory, kRootUse, errno);
  int error = posix_fallocate(fd.get(), 0, kProbeBytes);
  unlink(path.c_str());
  // This file system cannot reserve space.
  if (error == EINVAL || error == EOPNOTSUPP) return {};
  if (error != 0) return cannot_use(directory, kRootUse, error);
  return {};
}

json to_json(const StartedNode& node) {
  json processes = json::array();
  for (const auto& process : node.processes)
    processes.push_back({{"name", process.name},
                         {"pid", process.pid},
                         {"start_time", process.start_time},
                         {"command", process.command}});
  return {{"session_dir", node.session_dir},
          {"session_name", node.session_name},
          {"head_address", node.head_address},
          {"node_ip", node.node_ip},
          {"node_manager_port", node.node_manager_port},
          {"node_manager_socket", node.node_manager_socket},
          {"object_store_socket", node.object_store_socket},
          {"node_id", node.node_id_hex},
          {"processes", processes}};
}

// Returns nullopt for a text that is no record of this release: such a file is skipped, not
// trusted.
std::optional<StartedNode> node_from(const std::string& text) {
  json record = parse_json(text);
  if (!record.is_object()) return std::nullopt;
  try {
    StartedNode node;
    node.session_dir = record.at("session_dir");
    node.session_name = record.at("session_name");
    node.head_address = record.at("head_address");
    node.node_ip = record.at("node_ip");
    node.node_manager_port = record.at("node_manager_port");
    node.node_manager_socket = record.at("node_manager_socket");
    node.object_store_socket = record.at("object_store_socket");
    node.node_id_hex = record.at("node_id");
    for (const json& process : record.at("processes")) {
      node.processes.push_back({process.at("name"), process.at("pid"), process.at("start_time"),
                                process.value("command", std::vector<std::string>())});
    }
    return node;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::string record_path(const StartedNode& node) {
  return node.session_dir + "/node_" + node.node_id_hex + ".json";
}

bool is_head(const StartedNode& node) {
  for (const auto& process : node.processes) {
    if (process.name == "ray-head") return true;
  }
  return false;
}

bool any_alive(const StartedNode& node) {
  for (const auto& process : node.processes) {
    if (process.pid > 0 && process.start_time != 0 &&
        process_start_time(process.pid) == process.start_time)
      return true;
  }
  return false;
}

// Returns the sessions of live and dead clusters alike, without those of other users, who could
// hold locks there and replace directories by links.
std::vector<fs::path> session_directories(const std::string& root) {
  std::vector<fs::path> sessions;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error)) {
    struct stat info;
    if (entry.path().filename().string().starts_with("session_") &&
        lstat(entry.path().c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
        trusted_owner(info.st_uid))
      sessions.push_back(entry.path());
  }
  return sessions;
}

// Removes the sockets at which nobody listens: a program that was killed while it started a cluster
// for itself leaves those that no daemon had inherited yet.
void remove_stale_sockets(const fs::path& session) {
  const fs::path sockets = session / "sockets";
  // A process that binds a socket there holds this lock until it listens (net::listen_on()).
  Fd lock(open(sockets.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!lock.valid() || flock(lock.get(), LOCK_EX) != 0) return;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(sockets, error)) {
    auto address = net::Address::unix_socket(entry.path());
    if (entry.is_socket(error) &&
        net::is_listening(address, kReachTimeoutMs) == net::Listening::kNo)
      fs::remove(entry.path(), error);
  }
}

// Returns the records of live and dead nodes alike.
std::vector<StartedNode> all_records(const std::string& root) {
  std::vector<StartedNode> nodes;
  std::error_code error;
  for (const fs::path& session : session_directories(root)) {
    for (const auto& entry : fs::directory_iterator(session, error)) {
      std::string name = entry.path().filename();
      if (!name.starts_with("node_") || !name.ends_with(".json")) continue;
      auto text = read_own_file(entry.path());
      auto node = text ? node_from(*text) : std::nullopt;
      // A record that was copied here must not lead to another session's files.
      if (node && fs::path(node->session_dir).filename() == session.filename())
        nodes.push_back(std::move(*node));
    }
  }
  return nodes;
}

// Returns all recorded nodes, with the processes of unfinished starts, which no record names.
std::vector<StartedNode> all_nodes(const std::string& root) {
  std::vector<StartedNode> nodes = all_records(root);
  for (StartedNode& node : nodes) {
    for (StartedProcess& holder : StarterLine::holders(node.session_dir)) {
      bool recorded = std::any_of(node.processes.begin(), node.processes.end(),
                                  [&](const StartedProcess& p) { return p.pid == holder.pid; });
      if (!recorded) node.processes.push_back(std::move(holder));
    }
  }
  return nodes;
}

std::string root_of(const std::string& session_dir) {
  return session_dir.substr(0, session_dir.rfind('/'));
}

const char* kHowToStart =
    "start one with `rayctl start --head`, or name one with --address=HOST:PORT or RAY_ADDRESS";

Result<std::string> address_from_file(const std::string& root) {
  std::string path = root + kAddressFile;
  auto text = read_own_file(path, 4096);
  if (!text && errno == EPERM) {
    // This process will send its token to the address, so the file must be trusted.
    return make_error(Code::kNotFound,
                      fmt::format("{} is not a regular file of this user, so it is not trusted: "
                                  "name the cluster with --address=HOST:PORT or RAY_ADDRESS",
                                  path));
  }
  if (!text)
    return make_error(
        Code::kNotFound,
        fmt::format("no cluster found on this machine ({} does not exist): {}", path, kHowToStart));
  std::string address(trimmed(*text));
  auto parsed = net::Address::parse(address);
  if (!parsed || parsed->kind != net::Address::Kind::kTcp || parsed->port == 0) {
    return make_error(Code::kNotFound,
                      fmt::format("{} does not name a cluster (it reads '{}'): remove it, then {}",
                                  path, address.substr(0, 80), kHowToStart));
  }
  // Problems with the name or the route are reported by the client that connects.
  if (net::is_listening(*parsed, kReachTimeoutMs) == net::Listening::kNo) {
    if (node_without_head(root, parsed->port)) {
      return make_error(
          Code::kNotFound,
          fmt::format("the head of the cluster at {} has ended, while its node on this machine "
                      "goes on and waits for a head: start it again with `rayctl start --head "
                      "--port={}`",
                      address, parsed->port));
    }
    return make_error(Code::kNotFound, fmt::format("the cluster at {} that {} names has ended: {}",
                                                   address, path, kHowToStart));
  }
  return address;
}

bool answers(const std::string& address) {
  auto parsed = net::Address::parse(address);
  return parsed && parsed->kind == net::Address::Kind::kTcp &&
         net::is_listening(*parsed, kReachTimeoutMs) == net::Listening::kYes;
}

// Returns the newest cluster with a recorded node here. The address file names only the cluster
// that was started last, which may have ended.
std::optional<std::string> recorded_cluster(const std::string& root) {
  std::vector<StartedNode> nodes = all_records(root);
  std::erase_if(nodes, [](const StartedNode& node) { return !any_alive(node); });
  // The names of sessions begin with their time.
  std::sort(nodes.begin(), nodes.end(), [](const StartedNode& a, const StartedNode& b) {
    return a.session_name > b.session_name;
  });
  for (const StartedNode& node : nodes) {
    if (answers(node.head_address)) return node.head_address;
  }
  return std::nullopt;
}

// Returns the newest live cluster that a program started for itself. A killed program leaves its
// file behind, but nobody listens at that address.
std::optional<std::string> private_cluster(const std::string& root) {
  std::vector<fs::path> sessions = session_directories(root);
  // The names of sessions begin with their time.
  std::sort(sessions.rbegin(), sessions.rend());
  for (const fs::path& session : sessions) {
    auto text = read_own_file(session.string() + kPrivateAddressFile, 4096);
    if (!text) continue;
    std::string address(trimmed(*text));
    if (answers(address)) return address;
  }
  return std::nullopt;
}

}  // namespace

std::string temp_root(const std::string& option) {
  std::string root = !option.empty() ? option : environment("RAY_TMPDIR");
  if (root.empty()) root = default_root();
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  return root;
}

Status check_temp_root(const std::string& temp_dir) {
  const std::string root = temp_root(temp_dir), text = valid_utf8(root);
  const char* taken = "an absolute path";
  if (root.front() == '/') {
    if (text == root) return {};
    // The path is in JSON files and in answers as JSON.
    taken = "a path that is valid UTF-8";
  }
  return make_error(Code::kInvalid,
                    fmt::format("--temp-dir (or RAY_TMPDIR) is '{}': it takes {}", text, taken));
}

Result<Session> make_session(const std::string& temp_dir) {
  RT_TRY(check_temp_root(temp_dir));
  Session session;
  session.root = temp_root(temp_dir);
  RT_TRY(claim_directory(session.root, kRootUse));
  int64_t now_us = wall_now_us();
  std::time_t seconds = now_us / 1'000'000;
  session.name = fmt::format("session_{:%Y-%m-%d_%H-%M-%S}_{:06}_{}", fmt::localtime(seconds),
                             now_us % 1'000'000, getpid());
  session.directory = session.root + "/" + session.name;
  for (const std::string& path :
       {session.directory, session.directory + "/logs", session.directory + "/sockets"}) {
    if (mkdir(path.c_str(), 0700) != 0) {
      Error error = cannot_use(session.root, kRootUse, errno);
      remove_session(session);
      return error;
    }
  }
  if (Status usable = probe(session.directory); !usable) {
    remove_session(session);
    return usable.error();
  }
  return session;
}

void remove_session(const Session& session) {
  std::error_code ignored;
  fs::remove_all(session.directory, ignored);
}

Session session_of(const StartedNode& node) {
  return {root_of(node.session_dir), node.session_dir, node.session_name};
}

Status record_starting_node(const StartedNode& node) {
  return write_file_atomically(record_path(node), to_json(node).dump(1) + "\n", 0600);
}

Status record_node(const Session& session, const StartedNode& node) {
  RT_TRY(record_starting_node(node));
  std::string path = session.root + kAddressFile;
  struct stat info;
  // The address file of another user stays. This cluster runs all the same, but users must name its
  // address.
  if (lstat(path.c_str(), &info) == 0 && info.st_uid != geteuid() && geteuid() != 0) return {};
  return write_file_atomically(path, node.head_address + "\n", 0644);
}

void record_private_head(const Session& session, const StartedNode& node) {
  (void)write_file_atomically(session.directory + kPrivateAddressFile, node.head_address + "\n",
                              0600);
}

void point_latest(const Session& session) {
  std::string draft = fmt::format("{}{}.{}", session.root, kLatestLink, getpid());
  unlink(draft.c_str());
  if (symlink(session.name.c_str(), draft.c_str()) != 0) return;
  if (rename(draft.c_str(), (session.root + kLatestLink).c_str()) != 0) unlink(draft.c_str());
}

Status check_own_directory(const std::string& path) {
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0 && errno == ENOENT) return {};
  if (S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
      (info.st_mode & (S_IWGRP | S_IWOTH)) == 0)
    return {};
  return make_error(
      Code::kIo, fmt::format("{} is not a directory of this user to which no other can write (uid "
                             "{}, mode {:06o}), so its files are not trusted: remove it, or choose "
                             "another place with --temp-dir or RAY_TMPDIR",
                             path, info.st_uid, info.st_mode));
}

Status make_own_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return make_error(Code::kIo, fmt::format("{} cannot be made: {}", path, strerror(errno)));
  return check_own_directory(path);
}

std::vector<StartedNode> recorded_nodes(const std::string& root) {
  std::vector<StartedNode> nodes = all_nodes(root);
  std::erase_if(nodes, [](const StartedNode& node) { return !any_alive(node); });
  return nodes;
}

void forget_dead_nodes(const std::string& root) {
  for (const auto& node : all_nodes(root)) {
    if (!any_alive(node)) forget_node(node);
  }
  for (const fs::path& session : session_directories(root)) remove_stale_sockets(session);
}

void forget_node(const StartedNode& node) {
  std::error_code ignored;
  fs::remove(record_path(node), ignored);
  for (const char* sub : {"/sockets", "/runtime_resources"})
    fs::remove_all(node.session_dir + sub, ignored);
  std::string path = root_of(node.session_dir) + kAddressFile;
  auto text = read_own_file(path, 4096);
  // The file is also wrong for this machine when the last node here has left a cluster that goes on
  // elsewhere.
  if (text && trimmed(*text) == node.head_address) {
    if (is_head(node)) {
      fs::remove(path, ignored);
      return;
    }
    for (const auto& other : recorded_nodes(root_of(node.session_dir))) {
      if (other.head_address == node.head_address) return;
    }
    fs::remove(path, ignored);
  }
}

Result<std::string> running_cluster(const std::string& root) {
  auto recorded = address_from_file(root);
  if (recorded) return recorded;
  if (auto address = recorded_cluster(root)) return *address;
  if (auto address = private_cluster(root)) return *address;
  return recorded;
}

Result<std::string> resolve_address(const std::string& option) {
  std::string address = option, source = "--address";
  if (address.empty()) {
    address = environment("RAY_ADDRESS");
    source = "RAY_ADDRESS";
  }
  if (address.empty() || address == "auto") return running_cluster(temp_root());
  if (address.find("://") != std::string::npos) {
    return make_error(Code::kInvalid,
                      fmt::format("{} is '{}': it takes HOST:PORT or auto", source, address));
  }
  auto parsed = net::Address::parse(address);
  if (!parsed) return make_error(Code::kInvalid, source + ": " + parsed.error().message);
  if (parsed->kind != net::Address::Kind::kTcp || parsed->port == 0) {
    return make_error(
        Code::kInvalid,
        fmt::format("{} is '{}': it takes HOST:PORT with a port from 1 to 65535", source, address));
  }
  return address;
}

}  // namespace rt::launch
