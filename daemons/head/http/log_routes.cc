// Logs of every node: /api/v0/logs, /api/v0/logs/file, /api/v0/logs/stream, and /api/v0/logs/piece
// for followers that outlive this head.
#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "common/base/clock.h"
#include "daemons/head/http/envelope.h"
#include "daemons/head/http/query.h"
#include "daemons/head/http/routes.h"
#include "observability/state/log_position.h"
#include "observability/state/logs.h"

namespace rt::head {
namespace {

using http::Call;

constexpr size_t kLogPieceBytes = 1 << 20;
constexpr double kLongestIntervalS = 3600, kShortestIntervalS = 0.05;

void list_logs(Call& call, const ApiContext& context) {
  auto timeout_us = timeout_us_of(call);
  if (!timeout_us) return fail(call, timeout_us.error());
  auto found = state::list_logs(context.cluster, call.query("node_id"), call.query("node_ip"),
                                call.query("glob", "*"), *timeout_us);
  if (!found) return fail(call, found.error());
  succeed(call, "", {{"result", std::move(found->json)}}, Keys::kAsTheyAre);
}

Result<state::LogQuery> query_of(const Call& call, bool follow) {
  state::LogQuery query;
  query.node_id = call.query("node_id");
  query.node_ip = call.query("node_ip");
  query.filename = call.query("filename");
  query.actor_id = call.query("actor_id");
  query.task_id = call.query("task_id");
  query.submission_id = call.query("submission_id");
  query.suffix = call.query("suffix", "out");
  query.without_colours = is_yes(call.query("filter_ansi_code"));
  query.for_people = is_yes(call.query("for_people"));
  query.follow = follow;
  RT_ASSIGN(query.pid, whole_number(call, "pid", 0));
  RT_ASSIGN(query.attempt, whole_number(call, "attempt_number", 0));
  RT_ASSIGN(query.lines, whole_number(call, "lines", query.lines, -1));
  RT_ASSIGN(query.timeout_us, timeout_us_of(call));
  if (std::string text = call.query("interval"); !text.empty()) {
    double seconds = std::atof(text.c_str());
    if (!(seconds > 0))
      return make_error(Code::kInvalid,
                        fmt::format("interval is '{}': it takes seconds, more than 0", text));
    query.interval_us =
        static_cast<int64_t>(std::clamp(seconds, kShortestIntervalS, kLongestIntervalS) * 1e6);
  }
  return query;
}

// Sleeps in steps, so that the wait ends soon after the server's end begins or the client has
// left.
bool wait_for_more(const http::Client& client, int64_t us) {
  constexpr int64_t kStepUs = 100'000;
  for (const int64_t end_us = steady_now_us() + us; steady_now_us() < end_us;) {
    std::this_thread::sleep_for(std::chrono::microseconds(
        std::min<int64_t>(kStepUs, std::max<int64_t>(1, end_us - steady_now_us()))));
    if (!client.waits()) return false;
  }
  return true;
}

// Streams a log. With `followers` it goes on with what is written later; with null it ends at the
// log's current end.
void read(Call& call, const ApiContextPtr& context, const QuestionLimit* followers) {
  const bool follow = followers != nullptr;
  auto place = follow ? followers->enter(call) : nullptr;
  if (follow && !place) return;
  auto query = query_of(call, follow);
  if (!query) return http::text(call.response, 500, query.error().message);
  auto log = std::make_shared<state::LogReading>();
  if (Status found = log->open(context->cluster, *query); !found)
    return http::text(call.response, 500, found.error().message);
  if (std::string name = call.query("download_filename"); !name.empty()) {
    std::erase_if(name, [](char c) {
      return static_cast<unsigned char>(c) < ' ' || c == '"' || c == '\\' || c == '/';
    });
    call.response.set_header("Content-Disposition",
                             fmt::format("attachment; filename=\"{}\"", name));
  }
  call.response.set_chunked_content_provider(
      "text/plain; charset=utf-8", [log, place](http::Sink& sink) {
        auto take = [&](std::string_view piece) { return sink.write(piece.data(), piece.size()); };
        auto wait = [&](int64_t us) { return wait_for_more(sink.client(), us); };
        Status outcome = log->run(take, wait);
        // The answer breaks off, so that the client does not take what came for the whole log.
        if (!outcome) return false;
        sink.done();
        return true;
      });
}

// Followers repeat their question after 503.
void refuse_log(Call& call, const Error& error) {
  http::text(call.response, may_recover(error.code) ? 503 : 500, error.message);
}

// Answers what was written since `position`, and the next position, so that a follower needs no
// lasting connection.
void piece(Call& call, const ApiContext& context) {
  auto query = query_of(call, true);
  if (!query) return http::text(call.response, 500, query.error().message);
  query->position = call.query("position");
  state::LogReading log;
  if (Status found = log.open(context.cluster, *query); !found)
    return refuse_log(call, found.error());
  auto data = log.piece(kLogPieceBytes);
  if (!data) return refuse_log(call, data.error());
  call.response.set_header(state::kLogPositionHeader, log.position());
  http::text(call.response, 200, *data);
}

}  // namespace

void add_log_routes(http::Server& server, const ApiContextPtr& context,
                    const QuestionLimit& followers) {
  server.on("GET", "/api/v0/logs", [context](Call& call) { list_logs(call, *context); });
  server.on("GET", "/api/v0/logs/file", [context](Call& call) { read(call, context, nullptr); });
  server.on("GET", "/api/v0/logs/piece", [context](Call& call) { piece(call, *context); });
  server.on("GET", "/api/v0/logs/stream",
            [context, followers](Call& call) { read(call, context, &followers); });
}

}  // namespace rt::head
