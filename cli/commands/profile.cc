// `rayctl profile`: samples processes for some seconds and renders where their time goes.
#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>

#include "cli/client/state_common.h"
#include "cli/commands.h"
#include "cli/commands/profile_common.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/terminal/progress.h"
#include "common/base/utf8.h"
#include "observability/profile/sampler.h"

namespace rt::cli {
namespace {

using Request = proto::ProfileRequest;

constexpr int64_t kLeastMs = 10;  // One sample at the default rate.

Result<Request> profile_request(const CommandLine& line) {
  static const std::map<std::string, Request::Mode> kModes = {
      {"wall", Request::WALL}, {"cpu", Request::CPU}, {"offcpu", Request::OFF_CPU}};
  auto mode = kModes.find(line.get("mode", "wall"));
  if (mode == kModes.end())
    return make_error(Code::kInvalid, fmt::format("--mode {}: it is wall, cpu or offcpu",
                                                  excerpt(line.get("mode"))));
  RT_ASSIGN(auto duration_ms, line.milliseconds("duration", kLeastMs, profile::kMaxDurationMs));
  RT_ASSIGN(auto rate, line.whole("rate", 1, profile::kMaxHz));
  Request request;
  request.set_duration_ms(duration_ms.value_or(10'000));
  request.set_hz(static_cast<int32_t>(rate.value_or(100)));
  request.set_mode(mode->second);
  return request;
}

std::string default_format(const CommandLine& line) {
  return line.has("output") ? "flamegraph" : "text";
}

Status write_file(const std::string& path, const std::string& text) {
  OutputFile file(std::fopen(path.c_str(), "w"));
  if (!file) return errno_error("cannot write " + path, errno);
  if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0)
    return errno_error("cannot write " + path, errno);
  return {};
}

Status take_profile(const CommandLine& line, const Request& request, int64_t timeout_us) {
  if (line.has("output") && line.get("output") != "-") RT_TRY(check_writable(line.get("output")));
  state::ProfileQuery query;
  query.target = line.get("TARGET");
  query.node = line.get("node");
  query.native = !line.has("no-native");
  query.profile = request;
  query.timeout_us = timeout_us;
  auto ask = [&] {
    TimedProgress progress("Looking at " + excerpt(query.target), request.duration_ms() * 1000);
    return ask_profile(line, query);
  };
  RT_ASSIGN(state::ProfileAnswer answer, ask());
  for (const auto& process : answer.all) {
    for (const std::string& note : process.samples.notes())
      print(stderr, "Note: {}: {}\n", process.title, printable(note));
  }
  if (!line.has("all-threads")) profile::leave_out_idle_service(&answer.all);
  const std::string format = line.get("format", default_format(line));
  const std::string title =
      fmt::format("{}: {:g} s, {}", query.target, static_cast<double>(request.duration_ms()) / 1000,
                  line.get("mode", "wall"));
  RT_ASSIGN(std::string text, profile::render(answer.all, format, title));
  if (!line.has("output") || line.get("output") == "-") {
    print("{}", text);
    return {};
  }
  RT_TRY(write_file(line.get("output"), text));
  print("Wrote {}.{}\n", line.get("output"),
        format == "flamegraph"   ? " Open it in a browser."
        : format == "speedscope" ? " Open it in speedscope."
                                 : "");
  return {};
}

}  // namespace

int run_profile(const Words& words) {
  CommandLine line("profile",
                   "Shows where the time of processes goes. The target is the id of a process, an "
                   "actor, a running task or a job, an actor's name or class, 'all', head, "
                   "node-manager or object-store.");
  line.address_option()
      .option("duration,d", "SECONDS", "length of the profile (default 10), as 10 or 0.5")
      .option("rate,r", "HZ", "samples a second (default 100)")
      .timeout_option("for the answers, beyond the length of the profile (default 30)");
  line.choice("mode", "wall|cpu|offcpu",
              "all time (the default), time on a processor, time asleep");
  line.flag("native", "also native frames (the default)").flag("no-native", "Python frames only");
  line.flag("all-threads",
            "also what threads of the cluster software (ray-io, ray-flush, ...) spend asleep in "
            "workers and drivers");
  line.choice("format,f", "flamegraph|speedscope|folded|text",
              "the default: flamegraph into a file, text on the terminal");
  line.option("output,o", "FILE", "the file to write (default: standard output)")
      .option("node", "ID|IP", "processes of this node only")
      .positional("TARGET", true, "all|head|node-manager|object-store", /*more_values=*/true);
  if (auto code = line.parse(words)) return *code;
  if (line.has("native") && line.has("no-native"))
    return usage_error("profile", "--native and --no-native exclude each other");
  auto request = profile_request(line);
  if (!request) return usage_error("profile", request.error().message);
  // An unknown format is reported before the user waits for the samples.
  if (auto format = profile::render({}, line.get("format", default_format(line)), ""); !format)
    return usage_error("profile", format.error().message);
  auto timeout = timeout_us(line);
  if (!timeout) return usage_error("profile", timeout.error().message);
  return finish(take_profile(line, *request, *timeout));
}

}  // namespace rt::cli
