// `rayctl timeline`: writes the recorded task events, and the lives of placement groups, as a
// Chrome trace.
#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "cli/client/head_client.h"
#include "cli/client/state_common.h"
#include "cli/commands.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/terminal/progress.h"
#include "common/base/clock.h"
#include "common/base/readable.h"
#include "launch/node/launch.h"
#include "observability/events/timeline.h"

namespace rt::cli {
namespace {

constexpr int64_t kPageBytes = 16 << 20;
// Processes send their task events at least this often. Waiting that long makes sure that tasks
// which returned just before the command are in the trace.
constexpr std::chrono::milliseconds kEventsTravel{300};

// Finds the job that `wanted` names: a job id in hex, or the submission id of a submitted job.
Result<JobId> find_job(Head& head, const std::string& wanted, int64_t timeout_us) {
  if (std::string id = from_hex(wanted); JobId::is_valid(id)) return JobId::from_binary(id);
  proto::SubmittedJobRequest request;
  request.set_submission_id(wanted);
  auto found = head.client->call(&proto::HeadService::Stub::GetSubmittedJob, request, timeout_us);
  if (!found && found.error().code == Code::kNotFound)
    return make_error(
        Code::kNotFound,
        fmt::format("--job {}: no job has this id (rayctl list jobs names those there are)",
                    excerpt(wanted)));
  if (!found) return found.error();
  if (found->jobs().empty() || found->jobs(0).job_id().empty())
    return make_error(
        Code::kNotFound,
        fmt::format(
            "--job {}: its program has not called ray.init(), so that there are no tasks of it",
            excerpt(wanted)));
  return JobId::from_binary(found->jobs(0).job_id());
}

Result<Timeline::Options> options_of(const CommandLine& line) {
  Timeline::Options options;
  options.arrows = !line.has("no-arrows");
  RT_ASSIGN(auto last_us, line.duration_us("last"));
  if (last_us) options.since_us = wall_now_us() - *last_us;
  return options;
}

struct Written {
  int64_t tasks = 0;  // The number of tasks and calls.
  int64_t groups = 0, groups_left_out = 0;
  int64_t dropped = 0;  // The events that the head has lost.
};

// Writes the trace page by page, because the history of a cluster need not fit in memory.
Result<Written> write_trace(Head& head, const Timeline::Options& options, int64_t timeout_us,
                            std::FILE* file) {
  Written written;
  proto::GetTaskEventsRequest request;
  request.set_max_bytes(kPageBytes);
  if (options.job) request.set_job_id(options.job->binary());
  Timeline trace(options);
  Progress progress("Writing the trace:");
  int64_t bytes = 0;
  auto write = [&](const std::string& json) {
    if (file == stdout) {
      write_output(json);
    } else {
      std::fwrite(json.data(), 1, json.size(), file);
    }
    bytes += static_cast<int64_t>(json.size());
    progress.at(0, 0,
                fmt::format("{} tasks and calls, {}", trace.shown(),
                            binary_bytes(static_cast<double>(bytes))));
  };
  for (bool more = true; more;) {
    RT_ASSIGN(auto reply,
              head.client->call(&proto::HeadService::Stub::GetTaskEvents, request, timeout_us));
    for (const auto& batch : reply.batches()) {
      if (batch.max_time_us() < options.since_us) continue;
      auto data = unpack_task_events(batch.packed());
      std::string json;
      if (data)
        trace.add(*data, &json);
      else
        print(stderr, "Warning: skipped {} events that cannot be read: {}\n", batch.count(),
              data.error().message);
      write(json);
    }
    written.dropped = std::max(written.dropped, reply.dropped());
    more = reply.more() && reply.next_row() > request.after_row();
    request.set_after_row(reply.next_row());
  }
  RT_ASSIGN(auto groups,
            head.client->call(&proto::HeadService::Stub::ListGroups, proto::Empty(), timeout_us));
  std::string end;
  trace.add_groups(groups, wall_now_us(), &end);
  trace.end(&end);
  write(end);
  written.tasks = trace.shown();
  written.groups = trace.groups_shown();
  written.groups_left_out = trace.groups_left_out();
  return written;
}

// Creates the default output file and stores its name in `path`. Traces made within the same second
// get different names. Returns null, with errno set, on failure.
OutputFile create_default(std::string* path) {
  std::string stem =
      fmt::format("{}/ray-timeline-{}", launch::temp_root(), file_time(wall_now_us() / 1000));
  for (int n = 1;; ++n) {
    *path = n == 1 ? stem + ".json" : fmt::format("{}_{}.json", stem, n);
    OutputFile file(std::fopen(path->c_str(), "wx"));
    if (file || errno != EEXIST) return file;
  }
}

void warn_of_gaps(const Written& written, bool is_part) {
  if (written.tasks == 0)
    print(stderr, "Warning: no task {}; {}.\n",
          is_part ? "is of this job and this time" : "has been recorded yet",
          written.groups ? "the trace shows placement groups only" : "the trace is empty");
  if (written.groups_left_out > 0)
    print(stderr,
          "Warning: {} placement groups are left out: {} are drawn, those that live or ended "
          "last.\n",
          written.groups_left_out, written.groups);
  if (written.dropped > 0)
    print(stderr,
          "Warning: {} events were dropped (see settings task_events_buffer and "
          "task_events_max_bytes).\n",
          written.dropped);
}

Status save_timeline(const CommandLine& line) {
  RT_ASSIGN(const int64_t limit_us, timeout_us(line));
  RT_ASSIGN(const int64_t hello_us, connect_us(line));
  RT_ASSIGN(Timeline::Options options, options_of(line));
  std::string path = line.get("output");
  const bool to_output = path == "-";
  if (!path.empty() && !to_output) RT_TRY(check_writable(path));
  RT_ASSIGN(Head head, connect_head(line.get("address"), hello_us));
  if (line.has("job")) {
    RT_ASSIGN(options.job, find_job(head, line.get("job"), limit_us));
  }
  OutputFile file = path.empty() ? create_default(&path)
                    : to_output  ? OutputFile(stdout)
                                 : OutputFile(std::fopen(path.c_str(), "w"));
  if (to_output) path = "standard output";
  if (!file) return errno_error("cannot write " + path, errno);
  std::this_thread::sleep_for(kEventsTravel);
  auto written = write_trace(head, options, limit_us, file.get());
  if (to_output) RT_TRY(flush_output());
  bool intact = std::fflush(file.get()) == 0 && std::ferror(file.get()) == 0;
  int error = errno;
  if (!written || !intact) {
    std::error_code ignored;
    // Half a trace is of no use and is removed. The name in --output may be that of a device, which
    // must stay.
    if (std::filesystem::is_regular_file(path, ignored)) std::remove(path.c_str());
    return written ? errno_error("cannot write " + path, error) : written.error();
  }
  warn_of_gaps(*written, line.has("job") || line.has("last"));
  if (!to_output)
    print(
        "Trace file written to {} ({} tasks and calls).\nOpen it in chrome://tracing or "
        "https://ui.perfetto.dev.\n",
        path, written->tasks);
  return {};
}

}  // namespace

int run_timeline(const Words& words) {
  CommandLine line(
      "timeline",
      "Writes a Chrome trace of every task and actor call: process, start, duration, phases.");
  line.address_option().option(
      "output,o", "FILE",
      "where to (default: <temp root>/ray-timeline-<date>.json; -: standard output)");
  line.option("job", "ID", "only this job, by its job id or submission id")
      .option("last", "DURATION", "only what ended in these last minutes, as 5m, 90s, 2h, 1d");
  line.timeout_option("for each part of the head's answer (default 30)")
      .flag("no-arrows", "without the arrows from where tasks were submitted to where they ran");
  if (auto code = line.parse(words)) return *code;
  return state_finish("timeline", save_timeline(line));
}

}  // namespace rt::cli
