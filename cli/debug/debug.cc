// `rayctl debug`: collects what waits and what holds resources; debug_text.h explains it.
#include <fmt/core.h>

#include <algorithm>

#include "cli/client/head_client.h"
#include "cli/client/state_common.h"
#include "cli/commands.h"
#include "cli/debug/debug_text.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "common/base/clock.h"
#include "common/base/json_text.h"

namespace rt::cli {
namespace {

// Namespace and key prefix of breakpoints in the head's key-value store, as in
// python/ray/_private/breakpoints.py.
constexpr char kBreakpoints[] = "pdb", kBreakpointPrefix[] = "RAY_PDB_";

// Reads the breakpoints that wait. `left_us` returns the time that the whole command has left.
template <class LeftUs>
Status find_breakpoints(Head& head, const LeftUs& left_us, WaitingSnapshot* snapshot) {
  proto::KvListRequest list;
  list.set_ns(kBreakpoints);
  list.set_prefix(kBreakpointPrefix);
  RT_ASSIGN(auto keys, head.client->call(&proto::HeadService::Stub::KvList, list, left_us()));
  for (const std::string& key : keys.keys()) {
    proto::KvGetRequest get;
    get.set_ns(kBreakpoints);
    get.set_key(key);
    RT_ASSIGN(auto value, head.client->call(&proto::HeadService::Stub::KvGet, get, left_us()));
    auto json = parse_ordered_json(value.value());
    if (value.found() && json.is_object()) snapshot->breakpoints.push_back(std::move(json));
  }
  return {};
}

Status show_debug(const CommandLine& line, int64_t timeout_us) {
  const int64_t deadline_us = steady_now_us() + timeout_us;
  auto left_us = [deadline_us] { return std::max<int64_t>(1, deadline_us - steady_now_us()); };
  RT_ASSIGN(const int64_t hello_us, connect_us(line));
  RT_ASSIGN(Head head, connect_head(line.get("address"), hello_us));
  proto::GetSnapshotRequest wanted;
  wanted.set_status(true);
  wanted.mutable_actors()->set_alive_only(true);
  wanted.mutable_actors()->set_all_namespaces(true);
  wanted.set_jobs(true);
  wanted.set_groups(true);
  RT_ASSIGN(auto of_head,
            head.client->call(&proto::HeadService::Stub::GetSnapshot, wanted, left_us()));
  WaitingSnapshot snapshot;
  snapshot.head_address = head.address;
  snapshot.status = std::move(*of_head.mutable_status());
  snapshot.actors.assign(of_head.actors().actors().begin(), of_head.actors().actors().end());
  snapshot.jobs.assign(of_head.submitted_jobs().jobs().begin(),
                       of_head.submitted_jobs().jobs().end());
  snapshot.groups.assign(of_head.groups().groups().begin(), of_head.groups().groups().end());
  RT_TRY(find_breakpoints(head, left_us, &snapshot));
  state::Query query{"tasks"};
  query.detail = true;
  query.limit = state::kMaxLimit;
  query.timeout_us = left_us();
  for (const char* state : {"FINISHED", "FAILED"}) query.filters.push_back({"state", false, state});
  RT_ASSIGN(std::string token, client_token());
  RT_ASSIGN(auto tasks, state::list({head.address, token, hello_us}, query));
  snapshot.tasks = tasks.json["result"];
  if (snapshot.status.store_waits_size() > 0) {
    // The stores that did not answer. They are not named here, because `rayctl status` tells which
    // stores hang.
    std::vector<std::string> missing;
    RT_ASSIGN(auto stores,
              state::store_stats({head.address, token, hello_us}, left_us(), &missing));
    snapshot.stores = std::move(stores.json);
  }
  if (line.for_programs()) {
    print_data(line, debug_json(snapshot));
  } else {
    print("{}", debug_text(snapshot));
  }
  RT_TRY(flush_output());
  warn_of_missing(tasks.json);
  return {};
}

}  // namespace

int run_debug(const Words& words) {
  CommandLine line("debug",
                   "Says what waits and why: resources that no node has or that others hold, "
                   "placement groups that look for nodes, arguments that are not ready, actors "
                   "that are started again, breakpoints.");
  line.address_option().format_option().timeout_option().hidden_flag("verbose,v");
  if (auto code = line.parse(words)) return *code;
  auto timeout = timeout_us(line);
  if (!timeout) return usage_error("debug", timeout.error().message);
  return finish(show_debug(line, *timeout));
}

}  // namespace rt::cli
