// /api/v0/tasks/timeline: the trace of all tasks, streamed while it is read.
#include <fmt/chrono.h>
#include <fmt/core.h>

#include <vector>

#include "common/base/clock.h"
#include "common/proto/head.pb.h"
#include "daemons/head/http/envelope.h"
#include "daemons/head/http/query.h"
#include "daemons/head/http/routes.h"
#include "observability/events/timeline.h"
#include "observability/state/sources.h"

namespace rt::head {
namespace {

// Small, because for a client that reads slowly the head holds a page, the events of one of its
// batches (about ninety bytes each, at most 65,536 of them from current processes) and a piece of
// text.
constexpr int64_t kPageBytes = 128 << 10;
constexpr size_t kTracePieceBytes = 64 << 10;
constexpr int kMostTimelines = 8;
constexpr int64_t kTraceTimeoutUs = 30'000'000, kMostSeconds = 366 * 86400;

struct Reading {
  explicit Reading(Timeline::Options options)
      : since_us(options.since_us), trace(std::move(options)) {}
  std::unique_ptr<state::Sources> sources;
  proto::GetTaskEventsRequest request;
  const int64_t since_us;
  Timeline trace;
  // Places within the limits on simultaneous questions and timelines.
  std::vector<std::shared_ptr<void>> places;
};

// Sends one page of events, or the end of the trace. Returns false when the answer must break off.
bool write_page(Reading& reading, http::Sink& sink) {
  reading.sources->allow(kTraceTimeoutUs);
  auto reply = reading.sources->ask_head(&proto::HeadService::Stub::GetTaskEvents, reading.request);
  if (!reply) return false;
  for (const auto& batch : reply->batches()) {
    if (batch.max_time_us() < reading.since_us) continue;
    auto data = unpack_task_events(batch.packed());
    if (data && !reading.trace.add(*data, kTracePieceBytes, [&sink](const std::string& text) {
          return sink.write(text.data(), text.size());
        }))
      return false;
  }
  bool more = reply->more() && reply->next_row() > reading.request.after_row();
  reading.request.set_after_row(reply->next_row());
  if (more) return true;
  // A client that has read the end may ask again at once.
  reading.places.clear();
  std::string end;
  {
    auto groups = reading.sources->ask_head(&proto::HeadService::Stub::ListGroups, proto::Empty());
    if (!groups) return false;
    reading.trace.add_groups(*groups, wall_now_us(), &end);
  }
  reading.trace.end(&end);
  bool written = sink.write(end.data(), end.size());
  sink.done();
  return written;
}

void timeline(http::Call& call, const ApiContext& context, const QuestionLimit& questions,
              const QuestionLimit& timelines) {
  std::string job = call.query("job_id");
  if (!job.empty() && !JobId::is_valid(from_hex(job)))
    return fail(
        call, 400,
        fmt::format("job_id is '{}': it takes {} hexadecimal digits", job, 2 * JobId::kSize));
  Timeline::Options options{.numbered = true, .arrows = call.query("arrows") == "1"};
  if (call.request.has_param("last")) {
    auto seconds = whole_number(call, "last", 0);
    if (!seconds || *seconds < 1 || *seconds > kMostSeconds)
      return fail(call, 400,
                  fmt::format("last is '{}': it takes a number of seconds from 1 to {}",
                              call.query("last"), kMostSeconds));
    options.since_us = wall_now_us() - *seconds * 1'000'000;
  }
  if (!job.empty()) options.job = JobId::from_binary(from_hex(job));
  auto reading = std::make_shared<Reading>(std::move(options));
  for (const QuestionLimit* limit : {&questions, &timelines}) {
    reading->places.push_back(limit->enter(call));
    if (!reading->places.back()) return;
  }
  auto sources =
      state::Sources::connect(context.cluster.head_address, context.cluster.token, kTraceTimeoutUs);
  if (!sources) return fail(call, sources.error());
  reading->sources = std::move(*sources);
  reading->request.set_job_id(from_hex(job));
  reading->request.set_max_bytes(kPageBytes);
  if (call.query("download") == "1") {
    std::string date =
        fmt::format("{:%Y-%m-%d_%H-%M-%S}",
                    fmt::localtime(static_cast<std::time_t>(wall_now_us() / 1'000'000)));
    call.response.set_header("Content-Disposition",
                             fmt::format("attachment; filename=\"timeline-{}-{}.json\"",
                                         job.empty() ? "None" : job, date));
  }
  call.response.set_chunked_content_provider(
      "application/json", [reading](http::Sink& sink) { return write_page(*reading, sink); });
}

}  // namespace

void add_timeline_route(http::Server& server, const ApiContextPtr& context,
                        const QuestionLimit& questions) {
  const QuestionLimit timelines(kMostTimelines, "timelines", "");
  server.on("GET", "/api/v0/tasks/timeline", [context, questions, timelines](http::Call& call) {
    timeline(call, *context, questions, timelines);
  });
}

}  // namespace rt::head
