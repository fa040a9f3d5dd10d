// The Jobs REST interface: /api/jobs/... and /api/packages/.... Answers have no envelope; errors
// are plain text.
#include <fmt/core.h>

#include <charconv>
#include <optional>

#include "common/base/json_text.h"
#include "common/base/utf8.h"
#include "daemons/head/http/envelope.h"
#include "daemons/head/http/log_frames.h"
#include "daemons/head/http/packages.h"
#include "daemons/head/http/redaction.h"
#include "daemons/head/http/routes.h"
#include "observability/api_json/job_request.h"
#include "observability/state/lookups.h"
#include "observability/state/rows.h"
#include "observability/state/sources.h"

namespace rt::head {
namespace {

using http::Call;
using Stub = proto::HeadService::Stub;

constexpr int64_t kJobTimeoutUs = 30'000'000, kTailPollMs = 1000;

Result<proto::GetSnapshotReply> all_jobs(const ApiContext& context) {
  RT_ASSIGN(auto sources, state::Sources::connect(context.cluster.head_address,
                                                  context.cluster.token, kJobTimeoutUs));
  return state::all_jobs(*sources);
}

// Answers with the error's message as text.
void refuse_job(Call& call, const Error& error) {
  http::text(call.response,
             error.code == Code::kNotFound ? 404
             : may_recover(error.code)     ? 503
                                           : 500,
             error.message);
}

void answer_rows(Call& call, state::Json rows) {
  redact_for_browsers(call.request, &rows);
  http::json(call.response, 200, json_text(rows));
}

// Finds a job by its submission id or the id of its driver. Answers 404 and returns false when
// there is none.
bool find_job(Call& call, const ApiContext& context, state::Json* row) {
  auto jobs = all_jobs(context);
  if (!jobs) {
    refuse_job(call, jobs.error());
    return false;
  }
  for (state::Json& candidate : state::job_rows(*jobs)) {
    if (candidate["submission_id"] != call.parts[0] && candidate["job_id"] != call.parts[0])
      continue;
    *row = std::move(candidate);
    return true;
  }
  http::text(call.response, 404, fmt::format("Job {} does not exist", call.parts[0]));
  return false;
}

// Returns the submission id of the job that is named. Answers 404 or 400 and returns "" when there
// is none. `what` is the verb for the message: "stop".
std::string submission_of(Call& call, const ApiContext& context, const char* what) {
  state::Json row;
  if (!find_job(call, context, &row)) return {};
  if (row["submission_id"].is_string()) return row["submission_id"].get<std::string>();
  http::text(call.response, 400, fmt::format("Can only {} submission type jobs", what));
  return {};
}

// Sends one request to the head.
template <class Method>
auto ask(const ApiContext& context, Method method,
         const typename rpc::StubMethod<Method>::RequestType& request)
    -> Result<typename rpc::StubMethod<Method>::ReplyType> {
  RT_ASSIGN(auto sources, state::Sources::connect(context.cluster.head_address,
                                                  context.cluster.token, kJobTimeoutUs));
  return sources->ask_head(method, request);
}

proto::SubmittedJobRequest named(const std::string& submission_id) {
  proto::SubmittedJobRequest request;
  request.set_submission_id(submission_id);
  return request;
}

void list_jobs(Call& call, const ApiContext& context) {
  auto jobs = all_jobs(context);
  if (!jobs) return refuse_job(call, jobs.error());
  state::Json rows = state::Json::array();
  for (state::Json& row : state::job_rows(*jobs)) rows.push_back(std::move(row));
  answer_rows(call, std::move(rows));
}

void submit_job(Call& call, const ApiContext& context) {
  proto::SubmitJobRequest request;
  api_json::JobRequestError wrong;
  if (!api_json::parse_job_request(call.body, &request, &wrong))
    return http::text(call.response, wrong.status, wrong.text);
  auto reply = ask(context, &Stub::SubmitJob, request);
  if (!reply)
    return http::text(call.response, reply.error().code == Code::kInvalid ? 400 : 500,
                      reply.error().message);
  answer_json(call,
              {{"job_id", reply->submission_id()}, {"submission_id", reply->submission_id()}});
}

void stop_job(Call& call, const ApiContext& context) {
  std::string id = submission_of(call, context, "stop");
  if (id.empty()) return;
  auto reply = ask(context, &Stub::StopSubmittedJob, named(id));
  if (!reply) return refuse_job(call, reply.error());
  answer_json(call, {{"stopped", reply->stopped()}});
}

void delete_job(Call& call, const ApiContext& context) {
  std::string id = submission_of(call, context, "delete");
  if (id.empty()) return;
  auto reply = ask(context, &Stub::DeleteSubmittedJob, named(id));
  if (!reply) return refuse_job(call, reply.error());
  answer_json(call, {{"deleted", true}});
}

std::optional<int64_t> number_in_query(const Call& call, const char* name, int64_t most) {
  std::string text = call.query(name, "0");
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > most)
    return std::nullopt;
  return value;
}

// Answers one piece of the log from `offset` on, the way rayctl follows it. Ray has no such
// parameters.
void log_piece(Call& call, const ApiContext& context, const std::string& id) {
  auto offset = number_in_query(call, "offset", INT64_MAX),
       wait_ms = number_in_query(call, "wait_ms", kJobTimeoutUs / 1000 / 2);
  if (!offset || !wait_ms)
    return http::text(call.response, 400,
                      "offset and wait_ms are whole numbers from 0, wait_ms up to 15000");
  proto::JobLogsRequest request;
  request.set_submission_id(id);
  request.set_offset(*offset);
  request.set_wait_ms(*wait_ms);
  auto reply = ask(context, &Stub::GetJobLogs, request);
  if (!reply) return refuse_job(call, reply.error());
  call.response.status = 200;
  call.response.set_header("X-Ray-Next-Offset", std::to_string(reply->next_offset()));
  call.response.set_header("X-Ray-Job-Status", reply->job().status());
  call.response.set_content(reply->data(), "application/octet-stream");
}

// Sends everything that a job had written when it was asked for, as {"logs": "..."}. The log may
// have any size: it is sent while it is read.
struct WholeLog {
  std::unique_ptr<state::Sources> sources;
  proto::JobLogsRequest request;
  int64_t end = 0;
  // The beginning of a character whose rest is in the next piece.
  std::string pending = "";

  // Returns false when reading or sending failed: the answer breaks off, so that nobody takes it
  // for the whole log.
  bool write(proto::JobLogsReply& piece, http::Sink& sink) {
    const std::string begin = R"({"logs":")", rest = R"("})";
    if (!sink.write(begin.data(), begin.size())) return false;
    while (!piece.data().empty()) {
      request.set_offset(piece.next_offset());
      size_t tail = 0;
      pending += piece.data();
      if (!write_text(valid_utf8(pending, &tail), sink)) return false;
      pending.erase(0, pending.size() - tail);
      if (piece.next_offset() >= end) break;
      sources->allow(kJobTimeoutUs);
      auto next = sources->ask_head(&Stub::GetJobLogs, request);
      if (!next) return false;
      piece = std::move(*next);
    }
    if (!write_text(valid_utf8(pending), sink) || !sink.write(rest.data(), rest.size()))
      return false;
    sink.done();
    return true;
  }

  // Writes the text as JSON, without the quotes.
  static bool write_text(const std::string& text, http::Sink& sink) {
    const std::string json = json_text(state::Json(text));
    return sink.write(json.data() + 1, json.size() - 2);
  }
};

void whole_log(Call& call, const ApiContext& context) {
  std::string id = submission_of(call, context, "get logs of");
  if (id.empty()) return;
  if (call.request.has_param("offset")) return log_piece(call, context, id);
  auto reading = std::make_shared<WholeLog>();
  auto sources =
      state::Sources::connect(context.cluster.head_address, context.cluster.token, kJobTimeoutUs);
  if (!sources) return refuse_job(call, sources.error());
  reading->sources = std::move(*sources);
  reading->request.set_submission_id(id);
  auto first = reading->sources->ask_head(&Stub::GetJobLogs, reading->request);
  if (!first) return refuse_job(call, first.error());
  reading->end = first->size();
  call.response.set_chunked_content_provider(
      "application/json", [reading, piece = std::move(*first)](http::Sink& sink) mutable {
        return reading->write(piece, sink);
      });
}

Result<std::unique_ptr<rpc::SyncClient>> connect_head(const ApiContext& context) {
  RT_ASSIGN(auto address, net::Address::parse(context.cluster.head_address));
  rpc::Identity me;
  me.role = "client";
  me.token = context.cluster.token;
  return rpc::SyncClient::connect({.address = address}, me, kJobTimeoutUs);
}

// Sends output until the job has ended and all of it is sent, or the other side leaves. Whatever
// else ends it breaks the connection off, so that nobody takes what was sent for all there is.
void tail_log(net::WebSocket& socket, const http::Client& client, const ApiContext& context,
              const std::string& id) {
  auto head = connect_head(context);
  if (!head) return socket.break_off();
  LogFrames frames;
  proto::JobLogsRequest request;
  request.set_submission_id(id);
  for (;;) {
    if (!client.waits()) return socket.break_off();
    auto reply = (*head)->call(&Stub::GetJobLogs, request, kJobTimeoutUs);
    if (!reply) {
      // The node of a job that runs may be away for a while.
      if (!may_recover(reply.error().code) || !(*head)->connection()->is_open())
        return socket.break_off();
      if (!socket.wait(kTailPollMs)) return;
      continue;
    }
    request.set_offset(reply->next_offset());
    for (const std::string& frame : frames.add(reply->data())) {
      if (!socket.send_text(frame)) return;
    }
    if (!reply->data().empty()) continue;
    const std::string& status = reply->job().status();
    // The record is older than the data, so an empty answer of an ended job is the end of its log.
    if (status != "PENDING" && status != "RUNNING") break;
    if (!socket.wait(kTailPollMs)) return;
  }
  if (std::string rest = frames.rest(); !rest.empty()) socket.send_text(rest);
}

void add_job_log_routes(http::Server& server, const ApiContextPtr& context,
                        const QuestionLimit& followers) {
  server.on("GET", "/api/jobs/([^/]+)/logs", [context](Call& call) { whole_log(call, *context); });
  server.on_websocket(
      "/api/jobs/([^/]+)/logs/tail",
      [context, followers](Call& call) {
        if (followers.enter(call)) submission_of(call, *context, "tail logs of");
      },
      [context, followers](net::WebSocket& socket, const Call& call) {
        auto place = followers.enter();
        if (!place) return;
        auto jobs = all_jobs(*context);
        if (!jobs) return socket.break_off();
        for (const state::Json& row : state::job_rows(*jobs)) {
          if (row["submission_id"].is_string() &&
              (row["submission_id"] == call.parts[0] || row["job_id"] == call.parts[0]))
            return tail_log(socket, call.client, *context, row["submission_id"].get<std::string>());
        }
      });
}

void add_package_routes(http::Server& server, const ApiContextPtr& context) {
  server.on("GET", "/api/packages/([^/]+)/([^/]+)", [context](Call& call) {
    auto there =
        call.parts[0] == "gcs" ? has_package(context->cluster, call.parts[1]) : Result<bool>(false);
    if (!there && there.error().code != Code::kInvalid) return refuse_job(call, there.error());
    if (!there || !*there)
      return http::text(
          call.response, 404,
          fmt::format("Package {}://{} does not exist", call.parts[0], call.parts[1]));
    call.response.status = 200;
  });
  server.on("PUT", "/api/packages/([^/]+)/([^/]+)", [context](Call& call) {
    if (call.parts[0] != "gcs")
      return http::text(
          call.response, 500,
          fmt::format("protocol {} is not supported for packages: use gcs", call.parts[0]));
    Status stored = put_package(context->cluster, call.parts[1], call.body);
    if (!stored) return http::text(call.response, 500, stored.error().message);
    call.response.status = 200;
  });
}

}  // namespace

void add_job_routes(http::Server& server, const ApiContextPtr& context,
                    const QuestionLimit& followers) {
  server.on("GET", "/api/jobs/", [context](Call& call) { list_jobs(call, *context); });
  server.on("POST", "/api/jobs/", [context](Call& call) { submit_job(call, *context); });
  server.on("GET", "/api/jobs/([^/]+)", [context](Call& call) {
    state::Json row;
    if (find_job(call, *context, &row)) answer_rows(call, std::move(row));
  });
  server.on("DELETE", "/api/jobs/([^/]+)", [context](Call& call) { delete_job(call, *context); });
  server.on("POST", "/api/jobs/([^/]+)/stop", [context](Call& call) { stop_job(call, *context); });
  add_job_log_routes(server, context, followers);
  add_package_routes(server, context);
}

}  // namespace rt::head
