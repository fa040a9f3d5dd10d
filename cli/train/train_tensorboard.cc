// `rayctl train tensorboard`: shows the profiles of a training run with TensorBoard, to which the
// page Train links meanwhile.
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <utility>

#include "cli/commands.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/train/tensorboard.h"
#include "cli/train/train_common.h"
#include "common/base/clock.h"
#include "common/base/utf8.h"
#include "observability/state/over_http.h"
#include "observability/state/sources.h"
#include "observability/state/train_profiles.h"

namespace rt::cli {
namespace {

namespace fs = std::filesystem;
using HeadStub = proto::HeadService::Stub;

constexpr int64_t kLookUpUs = 30'000'000;
constexpr int64_t kRecordTimeoutUs = 2'500'000;
constexpr int64_t kMostPort = 65535;

// Says in the head's key-value store where TensorBoard is, until the destructor takes it back. A
// head that does not answer costs only the link on the page.
class Announcement {
 public:
  Announcement(state::Cluster cluster, std::string run_id)
      : cluster_(std::move(cluster)),
        run_id_(std::move(run_id)),
        owner_(fmt::format("{}-{}", ::getpid(), wall_now_us())) {}
  Announcement(const Announcement&) = delete;
  ~Announcement() {
    if (!announced_) return;
    auto sources = connect();
    if (!sources) return;
    proto::KvGetRequest key;
    key.set_ns(state::kTrainViewers);
    key.set_key(run_id_);
    auto value = (*sources)->ask_head(&HeadStub::KvGet, key);
    // Another TensorBoard may have written its own entry in the meantime; that stays.
    if (!value || value->value().find(owner_) == std::string::npos) return;
    (void)(*sources)->ask_head(&HeadStub::KvDelete, key);
  }

  // Writes the entry. Must be repeated every state::kViewerRenewedMs.
  void say(const std::string& url) {
    auto sources = connect();
    if (!sources) return;
    proto::KvPutRequest request;
    request.set_ns(state::kTrainViewers);
    request.set_key(run_id_);
    request.set_overwrite(true);
    request.set_value(state::viewer_text({url, owner_, wall_now_us() / 1000}));
    announced_ = (*sources)->ask_head(&HeadStub::KvPut, request).has_value() || announced_;
  }

 private:
  Result<std::unique_ptr<state::Sources>> connect() const {
    return state::Sources::connect(cluster_.head_address, cluster_.token, kRecordTimeoutUs);
  }

  const state::Cluster cluster_;
  const std::string run_id_, owner_;
  bool announced_ = false;
};

// A directory of links, which the destructor removes: TensorBoard takes one directory.
class Links {
 public:
  Links() = default;
  Links(const Links&) = delete;
  ~Links() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Result<std::string> make(const std::map<std::string, fs::path>& links) {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "rayctl-tensorboard-XXXXXX").string();
    if (!::mkdtemp(name.data())) return errno_error("cannot make " + name, errno);
    path_ = name;
    for (const auto& [link, target] : links) {
      fs::create_directory_symlink(target, path_ / link, error);
      if (error)
        return make_error(
            Code::kIo, fmt::format("cannot make {}: {}", (path_ / link).string(), error.message()));
    }
    return path_.string();
  }

 private:
  fs::path path_;
};

// TensorBoard shows the folder of the run's profiles, and beside it the run's logs for
// TensorBoard (<storage_path>/logs), if there are any. In that case the function says which `links`
// the directory to show must have.
Result<std::string> directory_of(const CommandLine& line, const state::Json& profiles,
                                 std::map<std::string, fs::path>* links) {
  const std::string name = excerpt(line.get("NAME"));
  std::error_code error;
  if (const std::string given = line.get("logdir"); !given.empty()) return given;
  std::string path;
  for (const state::Json& one : profiles["profiles"]) {
    if (std::string its = text_of(one, "path"); !its.empty()) path = its;
  }
  if (path.empty())
    return make_error(Code::kNotFound,
                      fmt::format("run {} has no profiles: `rayctl train profile {}` records one, "
                                  "or --logdir names a directory to show",
                                  name, name));
  const fs::path folder = fs::path(path).parent_path();
  if (path.find("://") != std::string::npos) return folder.string();
  if (!fs::is_directory(folder, error))
    return make_error(Code::kNotFound,
                      fmt::format("the profiles of run {} are in {}, which is not on this machine: "
                                  "run this command where it is, or --logdir names a copy",
                                  name, folder.string()));
  const fs::path logs = folder.parent_path() / "logs";
  if (fs::is_directory(logs, error)) *links = {{"profiles", folder}, {"logs", logs}};
  return folder.string();
}

// Refuses options that are wrong by themselves, before the cluster is asked.
Status check_options(const CommandLine& line) {
  const std::string directory = line.get("logdir"), python = line.get("python");
  std::error_code error;
  if (!directory.empty() && directory.find("://") == std::string::npos &&
      !fs::is_directory(directory, error))
    return make_error(Code::kNotFound,
                      fmt::format("--logdir {}: there is no such directory", excerpt(directory)));
  if (fs::is_directory(python, error))
    return make_error(Code::kInvalid, fmt::format("--python {}: a directory", excerpt(python)));
  if (python.find('/') != std::string::npos && ::access(python.c_str(), X_OK) != 0)
    return errno_error("--python " + excerpt(python), errno);
  return {};
}

Status show_profiles(const CommandLine& line, int port) {
  RT_TRY(check_options(line));
  RT_ASSIGN(auto cluster, state_cluster(line.get("address")));
  RT_ASSIGN(auto run, named_train_run(cluster, line.get("NAME"), kLookUpUs));
  const std::string run_id = text_of(run.json, "id"), name = printable(text_of(run.json, "name"));
  RT_ASSIGN(auto profiles, train_profiles_of(cluster, run_id, kLookUpUs));
  std::map<std::string, fs::path> wanted;
  TensorBoard board;
  RT_ASSIGN(board.logdir, directory_of(line, profiles.json, &wanted));
  RT_ASSIGN(board.python, tensorboard_python(line.get("python")));
  // The links are made after the interpreter has been tried, which takes seconds: until
  // run_tensorboard() watches for signals, Ctrl-C ends this process without destructors.
  Links links;
  if (!wanted.empty()) {
    RT_ASSIGN(board.logdir, links.make(wanted));
  }
  board.host = line.get("host");
  board.port = port;
  board.repeat_ms = state::kViewerRenewedMs;
  Announcement announcement(cluster, run_id);
  const bool announces = !state::is_http(cluster.head_address);
  bool told = false;
  board.shown = [&](const std::string& url) {
    if (!std::exchange(told, true)) {
      print("TensorBoard shows the profiles of run {} at {}\nCtrl-C ends it.{}\n", name,
            printable(url),
            announces ? ""
                      : " The page Train does not link to it, since that takes the head's address "
                        "(--address HOST:PORT).");
      std::fflush(stdout);
    }
    if (announces) announcement.say(url);
  };
  return run_tensorboard(board);
}

}  // namespace

int run_train_tensorboard(const Words& words) {
  CommandLine line("train tensorboard",
                   "Shows the profiles of a training run with TensorBoard, in the foreground. The "
                   "page Train links to it until Ctrl-C ends it. It needs the Python packages "
                   "tensorboard and torch-tb-profiler, and the folder of the profiles. NAME is the "
                   "run's name (its newest run) or its id.");
  line.address_option()
      .option("port,p", "PORT", "to listen at (default 6006, or the next free one)")
      .option("host", "ADDRESS",
              "to listen at (default localhost: TensorBoard asks nobody for a password)")
      .option("logdir", "DIR", "show this directory instead of the run's profiles")
      .option("python", "PROGRAM",
              "the interpreter that has TensorBoard (default: that of `tensorboard` on PATH, or "
              "python3)")
      .positional("NAME", true);
  if (auto code = line.parse(words)) return *code;
  auto port = line.whole("port", 1, kMostPort);
  if (!port) return usage_error("train tensorboard", port.error().message);
  return finish(show_profiles(line, static_cast<int>(port->value_or(0))));
}

}  // namespace rt::cli
