#include "cli/commands/start_options.h"
#include "cli/terminal/print.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "common/base/json_depth.h"
#include "common/base/json_text.h"
#include "common/base/small_file.h"
#include "common/base/utf8.h"
#include "common/config/settings.h"
#include "common/resources/label.h"

namespace rt::cli {
namespace {

using nlohmann::json;

// Options of Ray's command line that are accepted and ignored with a notice. Here every node has
// one port, so there are no ports to configure.
constexpr const char* kPointless[] = {"object-manager-port",       "min-worker-port",
                                      "max-worker-port",           "worker-port-list",
                                      "ray-client-server-port",    "dashboard-agent-listen-port",
                                      "dashboard-agent-grpc-port", "runtime-env-agent-port"};
constexpr const char* kRedis[] = {"redis-username", "redis-password", "redis-shard-ports"};
constexpr const char* kSwitches[] = {"include-log-monitor", "proxy-server-url"};
constexpr const char* kPointlessFlags[] = {"no-monitor", "disable-usage-stats",
                                           "enable-object-reconstruction", "ray-debugger-external"};
// Options that are refused: ignoring them would silently do something else than the user asked.
constexpr const char* kAbsent[] = {"autoscaling-config",     "object-spilling-directory",
                                   "tracing-startup-hook",   "system-reserved-cpu",
                                   "system-reserved-memory", "cgroup-path"};
constexpr const char* kAbsentFlags[] = {"enable-resource-isolation", "no-redirect-output"};
constexpr int64_t kMaxBytes = int64_t{1} << 46;

void notices(const CommandLine& line) {
  auto note = [&](const char* name, const char* why) {
    if (line.has(name)) print(stderr, "Notice: --{} has no effect: {}.\n", name, why);
  };
  for (const char* name : kPointless) note(name, "every node has one port for everything");
  for (const char* name : kRedis) note(name, "no Redis is needed; a token guards the cluster");
  for (const char* name : kSwitches) note(name, "there is nothing to switch off or on here");
  for (const char* name : kPointlessFlags) note(name, "there is nothing to switch off or on here");
}

Status check_supported(const CommandLine& line) {
  for (const char* name : kAbsent) {
    if (line.has(name))
      return make_error(Code::kUnsupported,
                        fmt::format("--{} is not available in this release", name));
  }
  for (const char* name : kAbsentFlags) {
    if (line.has(name))
      return make_error(Code::kUnsupported,
                        fmt::format("--{} is not available in this release", name));
  }
  if (line.has("head")) {
    if (line.has("address"))
      return make_error(Code::kUnsupported,
                        "--head starts a cluster, --address joins one: give one of them (Ray's "
                        "external Redis is not supported)");
    return {};
  }
  if (!line.has("address"))
    return make_error(Code::kUnsupported,
                      "give --head to start a cluster, or --address=HOST:PORT to join one");
  for (const char* name : {"port", "redis-shard-ports", "include-dashboard", "dashboard-host",
                           "dashboard-port", "system-config", "state-dir"}) {
    if (line.has(name))
      return make_error(
          Code::kUnsupported,
          fmt::format("--{} is for --head only: a node that joins takes it from the head", name));
  }
  return {};
}

Result<bool> boolean(const CommandLine& line, const char* name, bool otherwise) {
  std::string text = line.get(name);
  if (text.empty() && !line.has(name)) return otherwise;
  for (const char* yes : {"1", "true", "True", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"0", "false", "False", "no", "off"}) {
    if (text == no) return false;
  }
  return make_error(Code::kInvalid,
                    fmt::format("--{} is '{}': it takes true or false", name, excerpt(text)));
}

Error bad_json(const char* option, const std::string& text, const char* accepted) {
  return make_error(Code::kUnsupported,
                    fmt::format("--{} is '{}': it takes {}", option, excerpt(text), accepted));
}

// Parses JSON and sets `twice` to a name that an object on the outermost level has more than once,
// of which only the last value would count.
json parse_object(const std::string& text, std::string* twice) {
  std::set<std::string> names;
  auto note = [&](int depth, json::parse_event_t event, const json& value) {
    if (event == json::parse_event_t::key && depth == 1 &&
        !names.insert(value.get<std::string>()).second)
      *twice = value.get<std::string>();
    return true;
  };
  if (json_depth(text) > kMaxJsonDepth) return json(json::value_t::discarded);
  return json::parse(text, note, false);
}

Status check_once(const char* option, const std::string& twice) {
  if (twice.empty()) return {};
  return make_error(Code::kInvalid,
                    fmt::format("--{} names '{}' twice: give it once", option, excerpt(twice)));
}

Status read_resources(const CommandLine& line, std::map<std::string, double>* out) {
  if (!line.has("resources")) return {};
  constexpr const char* kAccepted =
      R"(a JSON object of numbers such as '{"name": 2, "other": 0.5}')";
  std::string twice;
  json parsed = parse_object(line.get("resources"), &twice);
  if (!parsed.is_object()) return bad_json("resources", line.get("resources"), kAccepted);
  RT_TRY(check_once("resources", twice));
  for (const auto& [name, value] : parsed.items()) {
    if (!value.is_number()) return bad_json("resources", line.get("resources"), kAccepted);
    (*out)[name] = value.get<double>();
  }
  return {};
}

Status read_settings(const CommandLine& line, std::map<std::string, std::string>* out) {
  if (!line.has("system-config")) return {};
  constexpr const char* kAccepted = R"(a JSON object of settings such as '{"max_workers": 8}')";
  std::string twice;
  json parsed = parse_object(line.get("system-config"), &twice);
  if (!parsed.is_object()) return bad_json("system-config", line.get("system-config"), kAccepted);
  RT_TRY(check_once("system-config", twice));
  for (const auto& [name, value] : parsed.items()) {
    if (value.is_structured() || value.is_null())
      return bad_json("system-config", line.get("system-config"), kAccepted);
    (*out)[name] = value.is_string() ? value.get<std::string>() : json_text(value);
  }
  return {};
}

// The least value depends on settings, so start_node() checks it. An error here names the same
// least value; only then are the settings read, because their file may be a pipe, which is read
// once.
Result<std::optional<int64_t>> store_memory(
    const CommandLine& line, const std::map<std::string, std::string>& system_config) {
  auto bytes = line.whole("object-store-memory", 1, kMaxBytes);
  if (bytes) return bytes;
  std::vector<std::string> ignored;
  auto flags = translate_ray_names(system_config, &ignored);
  auto settings = flags ? load_settings(line.get("config"), *flags) : flags.error();
  if (!settings) return bytes;
  return line.whole("object-store-memory", settings->min_object_store_memory, kMaxBytes);
}

// Takes the same labels as ray.init() (python/ray/_private/init_arguments.py).
Status add_label(const std::string& option, const std::string& name, const std::string& value,
                 std::map<std::string, std::string>* out) {
  if (name == "ray.io/node-id")
    return make_error(Code::kUnsupported,
                      fmt::format("--{} names '{}': the cluster gives this label", option, name));
  const size_t slash = name.rfind('/');
  const std::string word = slash == std::string::npos ? name : name.substr(slash + 1);
  if (!is_label_word(word) || (slash != std::string::npos && slash > kMostLabelPrefix) ||
      (!value.empty() && !is_label_word(value)))
    return make_error(
        Code::kInvalid,
        fmt::format("--{} has '{}={}': a label's name and its value are at most {} letters, "
                    "digits, '-', '_' and '.', of which the first and the last are a letter or a "
                    "digit; before the name may stand a prefix and '/'",
                    option, excerpt(name), excerpt(value), kMostLabelWord));
  (*out)[name] = value;
  return {};
}

// Removes a YAML scalar and the blanks and the comment behind it from the front of `text`, and
// returns the scalar. Returns nullopt when something else stands there or the text is no YAML.
std::optional<std::string> take_scalar(std::string_view* text, bool is_name) {
  std::string value;
  size_t at = 0;
  if (text->starts_with('\'')) {
    for (at = 1;; ++at) {
      if (at >= text->size()) return std::nullopt;
      if ((*text)[at] == '\'' && text->substr(at + 1, 1) != "'") break;
      if ((*text)[at] == '\'') ++at;
      value += (*text)[at];
    }
    ++at;
  } else if (text->starts_with('"')) {
    for (at = 1; at < text->size() && (*text)[at] != '"'; ++at) at += (*text)[at] == '\\' ? 1 : 0;
    if (at >= text->size()) return std::nullopt;
    json parsed = parse_json(text->substr(0, ++at));
    if (!parsed.is_string()) return std::nullopt;
    value = parsed.get<std::string>();
  } else {
    constexpr std::string_view kOther = "[]{},&*!|>%@`?-:";
    if (text->empty() || kOther.find((*text)[0]) != std::string_view::npos) return std::nullopt;
    at = std::min({text->size(),
                   is_name ? std::min(text->find(": "),
                                      text->ends_with(':') ? text->size() - 1 : text->size())
                           : text->size(),
                   text->find(" #")});
    value = text->substr(0, at);
    value.erase(value.find_last_not_of(" \t") + 1);
  }
  text->remove_prefix(at);
  text->remove_prefix(std::min(text->find_first_not_of(" \t"), text->size()));
  if (text->starts_with('#')) text->remove_prefix(text->size());
  return value;
}

// Reads labels from a file that holds "NAME: VALUE" lines (a subset of YAML) or a JSON object.
Status read_labels_file(const CommandLine& line, std::map<std::string, std::string>* out) {
  if (!line.has("labels-file")) return {};
  const std::string path = line.get("labels-file");
  const auto text = read_small_file(path);
  if (!text)
    return make_error(Code::kIo, fmt::format("--labels-file: cannot read '{}': {}", excerpt(path),
                                             text.error().message));
  if (valid_utf8(*text) != *text)
    return make_error(Code::kInvalid,
                      fmt::format("--labels-file: {} is not valid UTF-8", excerpt(path)));
  if (json parsed = parse_json(*text); parsed.is_object()) {
    for (const auto& [name, value] : parsed.items()) {
      if (!value.is_string())
        return make_error(Code::kInvalid,
                          fmt::format("--labels-file: the label '{}' in {} is no text",
                                      excerpt(name), excerpt(path)));
      RT_TRY(add_label("labels-file", name, value.get<std::string>(), out));
    }
    return {};
  }
  std::istringstream lines(*text);
  int number = 0;
  for (std::string one; std::getline(lines, one);) {
    ++number;
    std::string_view rest = one;
    if (rest.ends_with('\r')) rest.remove_suffix(1);
    if (rest.find_first_not_of(" \t") == std::string_view::npos ||
        rest[rest.find_first_not_of(" \t")] == '#' || rest == "---" || rest == "...")
      continue;
    auto name = take_scalar(&rest, true);
    bool colon = name && (rest.starts_with(": ") || rest == ":");
    if (colon) rest.remove_prefix(std::min(rest.find_first_not_of(" \t", 1), rest.size()));
    auto value = colon ? take_scalar(&rest, false) : std::nullopt;
    if (!value || !rest.empty() || name->empty() || one[0] == ' ') {
      return make_error(Code::kInvalid,
                        fmt::format("--labels-file: line {} of {} is '{}': it takes lines NAME: "
                                    "VALUE, or a JSON object of texts",
                                    number, excerpt(path), excerpt(one)));
    }
    RT_TRY(add_label("labels-file", *name, *value, out));
  }
  return {};
}

// Reads labels from "k=v,k2=v2". A JSON object is also accepted: older scripts for Ray pass one.
Status read_labels(const CommandLine& line, std::map<std::string, std::string>* out) {
  std::string text = line.get("labels");
  constexpr const char* kAccepted = "NAME=VALUE[,NAME=VALUE...]";
  if (text.starts_with("{")) {
    std::string twice;
    json parsed = parse_object(text, &twice);
    if (!parsed.is_object()) return bad_json("labels", text, kAccepted);
    RT_TRY(check_once("labels", twice));
    for (const auto& [name, value] : parsed.items()) {
      if (!value.is_string()) return bad_json("labels", text, kAccepted);
      RT_TRY(add_label("labels", name, value.get<std::string>(), out));
    }
    return {};
  }
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    std::string pair = text.substr(at, end - at);
    size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) return bad_json("labels", text, kAccepted);
    RT_TRY(add_label("labels", pair.substr(0, equals), pair.substr(equals + 1), out));
    at = end + 1;
  }
  return {};
}

}  // namespace

void declare_start_options(CommandLine& line) {
  line.flag("head", "start a cluster here")
      .option("address", "HOST:PORT",
              "join the cluster whose head is there (auto: the one last started on this machine)")
      .option("port", "N", "the head's port (default 6379; 0: any free one)")
      .option("include-dashboard", "BOOL", "whether the head has an HTTP interface (default true)")
      .option("dashboard-host", "IP",
              "address it listens on (default 127.0.0.1: this machine only)")
      .option("dashboard-port", "N",
              "its port (default 8265, or the next free one; 0: any free one)")
      .option(
          "state-dir", "DIR",
          "keep the head's durable state there: --head with the same port and directory continues "
          "the cluster after the head's machine was lost (default: in the session directory)")
      .option("num-cpus", "N", "CPUs this node offers (default: those this process may use)")
      .option("num-gpus", "N", "GPUs this node offers (default 0)")
      .option("memory", "BYTES",
              "memory for tasks and actors (default: what is available, less the object store)")
      .option("object-store-memory", "BYTES",
              "shared memory for objects (default: 30% of what is available)")
      .option("resources", "JSON", R"(custom resources: '{"name": 1}')")
      .option("labels", "K=V,...", "labels of this node")
      .option("labels-file", "FILE",
              "labels as lines NAME: VALUE, or a JSON object; those of --labels win")
      .option(
          "node-ip-address", "IP",
          "address other nodes reach this one by (default: $RAY_NODE_IP_ADDRESS, else detected)")
      .option("node-name", "NAME", "name of this node (default: its address)")
      .option("node-manager-port", "N", "this node's one TCP port (default: any free one)")
      .option("metrics-export-port", "N", "this node's port for Prometheus (default: any free one)")
      .flag("block", "stay in the foreground; end the node when this command ends")
      .option("temp-dir", "DIR", "root of the sessions (default: $RAY_TMPDIR or /tmp/ray)")
      .option("plasma-directory", "DIR",
              "where the object store's memory lives (default: memory without a file, counted as "
              "/dev/shm)")
      .option("system-config", "JSON", "settings by name, see docs/configuration.md")
      .option("config", "FILE", "JSON file of settings")
      .option("tls-cert", "FILE",
              "speak TLS, with this certificate (sets RAY_USE_TLS and RAY_TLS_SERVER_CERT for what "
              "is started)")
      .option("tls-key", "FILE", "its key (RAY_TLS_SERVER_KEY)")
      .option("tls-ca", "FILE", "the certificate of the cluster's authority (RAY_TLS_CA_CERT)");
  line.log_options().hidden_flag("verbose,v");
  for (const char* name : kPointless) line.hidden_option(name);
  for (const char* name : kRedis) line.hidden_option(name);
  for (const char* name : kSwitches) line.hidden_option(name);
  for (const char* name : kPointlessFlags) line.hidden_flag(name);
  for (const char* name : kAbsent) line.hidden_option(name);
  for (const char* name : kAbsentFlags) line.hidden_flag(name);
}

Result<launch::NodeOptions> start_options(const CommandLine& line) {
  RT_TRY(check_supported(line));
  launch::NodeOptions options;
  options.head = line.has("head");
  options.address = line.get("address");
  RT_ASSIGN(auto port, line.whole("port", 0, 65535));
  options.port = static_cast<int>(port.value_or(6379));
  RT_ASSIGN(auto node_port, line.whole("node-manager-port", 0, 65535));
  options.node_manager_port = static_cast<int>(node_port.value_or(0));
  RT_ASSIGN(auto metrics_port, line.whole("metrics-export-port", 0, 65535));
  options.metrics_export_port = static_cast<int>(metrics_port.value_or(0));
  RT_ASSIGN(auto dashboard_port, line.whole("dashboard-port", 0, 65535));
  if (dashboard_port) options.dashboard.port = static_cast<int>(*dashboard_port);
  options.dashboard.host = line.get("dashboard-host");
  RT_ASSIGN(options.dashboard.include, boolean(line, "include-dashboard", true));
  RT_ASSIGN(auto cpus, line.whole("num-cpus", 0, 1'000'000));
  if (cpus) options.resources.num_cpus = static_cast<double>(*cpus);
  RT_ASSIGN(auto gpus, line.whole("num-gpus", 0, 1'000'000));
  if (gpus) options.resources.num_gpus = static_cast<double>(*gpus);
  RT_ASSIGN(options.resources.memory, line.whole("memory", 1, kMaxBytes));
  RT_TRY(read_resources(line, &options.resources.custom));
  RT_TRY(read_labels_file(line, &options.labels));
  RT_TRY(read_labels(line, &options.labels));
  RT_TRY(read_settings(line, &options.system_config));
  RT_ASSIGN(options.resources.object_store_memory, store_memory(line, options.system_config));
  options.state_dir = line.get("state-dir");
  if (line.has("state-dir") && options.state_dir.empty())
    return make_error(Code::kUnsupported, "--state-dir is empty: it takes a directory");
  options.node_ip = line.get("node-ip-address");
  options.node_name = line.get("node-name");
  options.temp_dir = line.get("temp-dir");
  options.plasma_directory = line.get("plasma-directory");
  options.config_file = line.get("config");
  notices(line);
  return options;
}

}  // namespace rt::cli
