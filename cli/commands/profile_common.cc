#include "cli/commands/profile_common.h"

#include <fmt/core.h>

#include "cli/client/head_client.h"
#include "cli/client/state_common.h"
#include "cli/terminal/print.h"
#include "common/base/utf8.h"
#include "launch/node/launch.h"

namespace rt::cli {

Result<state::ProfileAnswer> ask_profile(const CommandLine& line,
                                         const state::ProfileQuery& query) {
  state::Cluster cluster;
  RT_ASSIGN(cluster.head_address, launch::resolve_address(line.get("address")));
  RT_ASSIGN(cluster.token, client_token());
  RT_ASSIGN(cluster.connect_us, connect_us(line));
  RT_ASSIGN(state::ProfileAnswer answer, state::profile_processes(cluster, query));
  for (const std::string& missing : answer.missing)
    print(stderr, "Warning: no answer from {}\n", printable(missing));
  return answer;
}

api_json::Json stacks_json(const profile::AllSamples& all) {
  using api_json::Json;
  Json processes = Json::array();
  for (const auto& process : all) {
    const auto& samples = process.samples;
    Json threads = Json::array();
    for (const auto& stack : samples.stacks()) {
      const auto& thread = samples.threads(static_cast<int>(stack.thread()));
      Json frames = Json::array();
      for (int i = stack.frames_size(); i-- > 0;) {
        const auto& frame = samples.frames(static_cast<int>(stack.frames(i)));
        frames.push_back({{"function", frame.function()},
                          {"file", frame.file()},
                          {"line", frame.line()},
                          {"module", frame.module()},
                          {"native", frame.native()}});
      }
      threads.push_back({{"tid", thread.tid()},
                         {"name", thread.name()},
                         {"active", stack.on_cpu() > 0},
                         {"frames", std::move(frames)}});
    }
    processes.push_back({{"process", process.title},
                         {"pid", samples.pid()},
                         {"runtime", samples.runtime()},
                         {"threads", std::move(threads)},
                         {"notes", Json(std::vector<std::string>(samples.notes().begin(),
                                                                 samples.notes().end()))}});
  }
  return processes;
}

}  // namespace rt::cli
