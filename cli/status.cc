#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/head_client.h"
#include "cli/output.h"
#include "cli/status_text.h"

namespace rt::cli {
namespace {

Status show(const CommandLine& line) {
  RT_ASSIGN(Head head, connect_head(line.get("address")));
  RT_ASSIGN(auto status, head.client->call(&proto::HeadService::Stub::GetClusterStatus, proto::Empty()));
  if (line.json()) {
    print_json(status_json(status));
  } else {
    fmt::print("{}", status_text(status, line.has("verbose")));
  }
  return {};
}

}  // namespace

int run_status(const Words& words) {
  CommandLine line("status", "Shows nodes, resource usage, what waits for resources, and recent failures.");
  line.address_option().format_option().flag("verbose,v", "also usage per node");
  if (auto code = line.parse(words)) return *code;
  return finish(show(line));
}

}  // namespace rt::cli
