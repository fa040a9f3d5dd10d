// `rayctl metrics launch-prometheus` and `shutdown-prometheus`: run a Prometheus on this machine
// that scrapes the cluster whose head is here.
#include <fmt/core.h>
#include <httplib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cli/client/head_client.h"
#include "cli/client/state_common.h"
#include "cli/commands.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "common/base/clock.h"
#include "common/base/environment.h"
#include "common/base/json_text.h"
#include "common/base/program.h"
#include "common/net/listen.h"
#include "common/tls/tls.h"
#include "launch/node/launch.h"
#include "launch/node/session.h"
#include "launch/node/spawn.h"

namespace rt::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kStartTimeoutUs = 20'000'000, kStopGraceUs = 10'000'000;
constexpr int64_t kTargetsTimeoutUs = 5'000'000;
constexpr auto kPoll = std::chrono::milliseconds(50);
constexpr size_t kLogTailBytes = 1500;

// The files of the launched Prometheus, all in one directory of the temp root. There is at most one
// Prometheus per temp root, because the head keeps one file with targets there.
struct Place {
  std::string root, directory;
  std::string targets() const { return root + "/prom_metrics_service_discovery.json"; }
  std::string config() const { return directory + "/prometheus.yml"; }
  std::string token() const { return directory + "/token"; }
  std::string log() const { return directory + "/prometheus.log"; }
  std::string record() const { return directory + "/process.json"; }
};

Place place_of(const CommandLine& line) {
  std::string root = launch::temp_root(line.get("temp-dir"));
  return {root, root + "/prometheus"};
}

std::string read_all(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Status write_all(const std::string& path, const std::string& text, mode_t mode) {
  std::error_code ignored;
  fs::remove(path, ignored);  // an existing file would keep its old mode
  mode_t before = ::umask(static_cast<mode_t>(~mode & 0777));
  std::ofstream file(path, std::ios::binary);
  ::umask(before);
  file << text;
  file.close();
  if (file.fail()) return make_error(Code::kIo, fmt::format("{} cannot be written", path));
  return {};
}

// The Prometheus that was launched earlier, if it still runs. The start time guards against a
// process id that has been reused.
std::optional<launch::StartedProcess> running(const Place& place) {
  json record = parse_json(read_all(place.record()));
  if (!record.is_object()) return std::nullopt;
  launch::StartedProcess process{
      "prometheus", record.value("pid", 0), record.value("start_time", uint64_t{0}), {}};
  if (process.pid <= 0 || launch::process_start_time(process.pid) != process.start_time)
    return std::nullopt;
  return process;
}

Status check_program(const std::string& given) {
  if (given.empty() || why_not_runnable(given) == 0) return {};
  return make_error(Code::kInvalid, fmt::format("--prometheus {}: not an executable file", given));
}

Result<std::string> program_on_path() {
  std::string found = find_program("prometheus", environment("PATH"));
  if (!found.empty()) return found;
  return make_error(
      Code::kNotFound,
      "there is no `prometheus` on the PATH, and this command downloads nothing: install it "
      "(Debian: apt-get install prometheus), or give --prometheus PROGRAM");
}

std::string config_text(const Place& place, bool with_token) {
  std::string text = fmt::format(
      "global:\n  scrape_interval: 10s\nscrape_configs:\n  - job_name: ray\n    file_sd_configs:\n "
      "     - files: ['{}']\n        refresh_interval: 10s\n",
      place.targets());
  if (with_token)
    text += fmt::format("    authorization:\n      type: Bearer\n      credentials_file: '{}'\n",
                        place.token());
  // Whether a target is scraped over TLS is in the file with the targets.
  if (tls::requested_by_environment())
    text += fmt::format("    tls_config:\n      ca_file: '{}'\n",
                        fs::absolute(environment(tls::kAuthorities)).string());
  return text;
}

Status await_ready(const launch::StartedProcess& process, int port, const std::string& log) {
  httplib::Client client("127.0.0.1", port);
  int64_t deadline_us = steady_now_us() + kStartTimeoutUs;
  while (true) {
    auto answer = client.Get("/-/ready");
    std::string end = launch::reap_and_describe(process.pid);
    if (!end.empty()) {
      std::string said = read_all(log);
      return make_error(
          Code::kUnavailable,
          said.empty()
              ? fmt::format("Prometheus {} and said nothing: is it the right program?", end)
              : fmt::format("Prometheus {}. It said:\n{}", end,
                            said.substr(said.size() - std::min(said.size(), kLogTailBytes))));
    }
    if (answer && answer->status == 200) return {};
    if (steady_now_us() > deadline_us)
      return make_error(
          Code::kTimeout,
          fmt::format("Prometheus (process {}) is not ready yet: see {}", process.pid, log));
    std::this_thread::sleep_for(kPoll);
  }
}

// Whether the head has written its targets. A head that has just started does so in a moment.
bool await_targets(const Place& place) {
  if (fs::exists(place.targets())) return true;
  if (!launch::running_cluster(place.root)) return false;
  const int64_t deadline_us = steady_now_us() + kTargetsTimeoutUs;
  while (!fs::exists(place.targets())) {
    if (steady_now_us() > deadline_us) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

// A port that is in use is one clear error here; Prometheus says it within its log.
Status check_free(int port) {
  RT_ASSIGN(int listener, net::listen_on_port("127.0.0.1", port, "--port"));
  ::close(listener);
  return {};
}

Status launch_prometheus(const CommandLine& line) {
  RT_ASSIGN(auto port, line.whole("port", 1, 65535));
  std::string program = line.get("prometheus");
  RT_TRY(check_program(program));
  const int at = static_cast<int>(port.value_or(9090));
  Place place = place_of(line);
  // Other users may put directories into the root: a record of theirs would name a process to end,
  // and a file of theirs would get the token.
  RT_TRY(launch::check_own_directory(place.directory));
  if (auto before = running(place))
    return make_error(
        Code::kAlreadyExists,
        fmt::format(
            "Prometheus is running already (process {}): `{} metrics shutdown-prometheus` ends it",
            before->pid, program_name()));
  if (!await_targets(place)) {
    return make_error(
        Code::kNotFound,
        fmt::format("{} does not exist: the head of a cluster keeps it, on its own machine. Start "
                    "one here (`{} start --head`), or run this where the head is",
                    place.targets(), program_name()));
  }
  if (program.empty()) {
    // Comes after everything that is wrong with the options and the cluster, which is named first,
    // whatever is installed here.
    RT_ASSIGN(program, program_on_path());
  }
  RT_TRY(check_free(at));
  RT_ASSIGN(std::string token, client_token());
  RT_TRY(launch::make_own_directory(place.directory));
  std::error_code failed;
  RT_TRY(write_all(place.config(), config_text(place, !token.empty()), 0644));
  if (!token.empty()) RT_TRY(write_all(place.token(), token, 0600));
  fs::remove(place.log(), failed);
  launch::SpawnRequest request;
  request.name = "prometheus";
  request.executable = program;
  request.arguments = {"--config.file=" + place.config(),
                       "--storage.tsdb.path=" + place.directory + "/data",
                       fmt::format("--web.listen-address=127.0.0.1:{}", at)};
  request.environment["RAY_AUTH_TOKEN"] = std::nullopt;
  request.output_file = place.log();
  RT_ASSIGN(auto process, launch::spawn(request));
  RT_TRY(write_all(
      place.record(),
      json_text(json({{"pid", process.pid}, {"start_time", process.start_time}, {"port", at}})) +
          "\n",
      0644));
  Status ready = await_ready(process, at, place.log());
  if (!ready) {
    if (ready.error().code == Code::kUnavailable) fs::remove(place.record(), failed);
    return ready;
  }
  print(
      "Prometheus runs at http://127.0.0.1:{} (process {}, files in {}).\n`{} metrics "
      "shutdown-prometheus` ends it.\n",
      at, process.pid, place.directory, program_name());
  return {};
}

Status shutdown_prometheus(const CommandLine& line) {
  Place place = place_of(line);
  RT_TRY(launch::check_own_directory(place.directory));
  auto process = running(place);
  std::error_code ignored;
  fs::remove(place.record(), ignored);
  fs::remove(place.token(), ignored);
  if (!process) {
    print("No Prometheus that `metrics launch-prometheus` started is running.\n");
    return {};
  }
  auto stopped = launch::stop_processes({*process}, kStopGraceUs);
  print("Prometheus (process {}) has ended{}.\n", process->pid,
        stopped.killed ? ": it had to be killed" : "");
  return {};
}

}  // namespace

int run_launch_prometheus(const Words& words) {
  CommandLine line("metrics launch-prometheus",
                   "Starts the Prometheus of this machine for the cluster whose head is here, on a "
                   "loopback port.");
  line.option("prometheus", "PROGRAM",
              "the Prometheus to start (default: the one on the PATH; nothing is downloaded)")
      .option("port", "N", "port of its own pages on 127.0.0.1 (default 9090)")
      .option("temp-dir", "DIR", "root of the sessions (default: $RAY_TMPDIR or /tmp/ray)");
  if (auto code = line.parse(words)) return *code;
  return state_finish("metrics launch-prometheus", launch_prometheus(line));
}

int run_shutdown_prometheus(const Words& words) {
  CommandLine line("metrics shutdown-prometheus",
                   "Ends the Prometheus that `metrics launch-prometheus` started.");
  line.option("temp-dir", "DIR", "root of the sessions (default: $RAY_TMPDIR or /tmp/ray)");
  if (auto code = line.parse(words)) return *code;
  return finish(shutdown_prometheus(line));
}

}  // namespace rt::cli
