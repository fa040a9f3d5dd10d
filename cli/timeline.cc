#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/head_client.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "common/base/clock.h"
#include "common/events/task_events.h"
#include "common/launch/launch.h"

namespace rt::cli {
namespace {

constexpr int64_t kPageBytes = 16 << 20;
// Processes send what they recorded at least this often: a task that has just returned shall be in the trace.
constexpr std::chrono::milliseconds kEventsTravel{300};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// Page by page: a long-running cluster's trace need not fit in memory.
Result<int64_t> write_trace(Head& head, std::FILE* file, int64_t* dropped) {
  int64_t written = 0, after = 0, bytes = 0;
  Progress progress("Writing the trace:");
  bool first = true;
  std::fputc('[', file);
  for (bool more = true; more;) {
    proto::GetTaskEventsRequest request;
    request.set_after_row(after);
    request.set_max_bytes(kPageBytes);
    RT_ASSIGN(auto reply, head.client->call(&proto::HeadService::Stub::GetTaskEvents, request));
    for (const auto& batch : reply.batches()) {
      auto data = unpack_task_events(batch.packed());
      if (!data) {
        fmt::print(stderr, "Warning: skipped {} events that cannot be read: {}\n", batch.count(), data.error().message);
        continue;
      }
      std::string json;
      append_timeline(*data, &json);
      if (json.empty()) continue;
      if (!first) std::fputs(",\n", file);
      first = false;
      std::fwrite(json.data(), 1, json.size(), file);
      written += static_cast<int64_t>(data->events.size());
      bytes += static_cast<int64_t>(json.size());
      progress.at(0, 0, fmt::format("{} tasks and calls, {}", written, binary_bytes(static_cast<double>(bytes))));
    }
    *dropped = std::max(*dropped, reply.dropped());
    more = reply.more() && reply.next_row() > after;
    after = reply.next_row();
  }
  std::fputs("]\n", file);
  return written;
}

// A second trace of the same second gets a name of its own.
File create_default(std::string* path) {
  std::string stem = fmt::format("{}/ray-timeline-{}", launch::temp_root(), file_time(wall_now_us() / 1000));
  for (int n = 1;; ++n) {
    *path = n == 1 ? stem + ".json" : fmt::format("{}_{}.json", stem, n);
    File file(std::fopen(path->c_str(), "wx"));
    if (file || errno != EEXIST) return file;
  }
}

Status run(const CommandLine& line) {
  RT_ASSIGN(Head head, connect_head(line.get("address")));
  std::string path = line.get("output");
  File file = path.empty() ? create_default(&path) : File(std::fopen(path.c_str(), "w"));
  if (!file) return errno_error("cannot write " + path, errno);
  std::this_thread::sleep_for(kEventsTravel);
  int64_t dropped = 0;
  auto written = write_trace(head, file.get(), &dropped);
  bool intact = std::fflush(file.get()) == 0 && std::ferror(file.get()) == 0;
  int error = errno;
  if (!written || !intact) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) std::remove(path.c_str());     // half a trace; never a device
    return written ? errno_error("cannot write " + path, error) : written.error();
  }
  if (*written == 0) fmt::print(stderr, "Warning: no task has been recorded yet; the trace is empty.\n");
  if (dropped > 0) fmt::print(stderr, "Warning: {} events were dropped (see settings task_events_buffer and task_events_max_bytes).\n", dropped);
  fmt::print("Trace file written to {} ({} tasks and calls).\nOpen it in chrome://tracing or https://ui.perfetto.dev.\n", path, *written);
  return {};
}

}  // namespace

int run_timeline(const Words& words) {
  CommandLine line("timeline", "Writes a Chrome trace of every task and actor call: process, start, duration, phases.");
  line.address_option().option("output,o", "FILE", "where to (default: <temp root>/ray-timeline-<date>.json)");
  if (auto code = line.parse(words)) return *code;
  return finish(run(line));
}

}  // namespace rt::cli
