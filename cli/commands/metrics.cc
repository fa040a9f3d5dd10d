// `rayctl metrics`: prints the metrics of user programs on all nodes as Prometheus text.
#include <fmt/core.h>

#include "cli/client/head_client.h"
#include "cli/client/state_common.h"
#include "cli/commands.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "launch/node/launch.h"
#include "observability/state/query.h"

namespace rt::cli {
namespace {

Status show_metrics(const CommandLine& line, int64_t timeout_us) {
  state::Cluster cluster;
  RT_ASSIGN(cluster.head_address, launch::resolve_address(line.get("address")));
  RT_ASSIGN(cluster.token, client_token());
  RT_ASSIGN(cluster.connect_us, connect_us(line));
  std::vector<std::string> missing;
  RT_ASSIGN(std::string text, state::metrics_text(cluster, RT_VERSION, timeout_us, &missing));
  print("{}", text);
  for (const std::string& node : missing) print(stderr, "Warning: no metrics from {}\n", node);
  return {};
}

}  // namespace

int run_metrics(const Words& words) {
  if (!words.empty() && words[0] == "launch-prometheus")
    return run_launch_prometheus({words.begin() + 1, words.end()});
  if (!words.empty() && words[0] == "shutdown-prometheus")
    return run_shutdown_prometheus({words.begin() + 1, words.end()});
  CommandLine line(
      "metrics",
      "Prints what programs count with ray.util.metrics, of all nodes, as Prometheus text.\nAlso: "
      "metrics launch-prometheus|shutdown-prometheus (their --help says more).");
  line.address_option().timeout_option();
  if (auto code = line.parse(words)) return *code;
  auto timeout = timeout_us(line);
  if (!timeout) return usage_error("metrics", timeout.error().message);
  return finish(show_metrics(line, *timeout));
}

}  // namespace rt::cli
