#include "cli/jobs/job_server.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/client/head_client.h"
#include "cli/client/state_common.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/terminal/progress.h"
#include "common/base/environment.h"
#include "common/base/json_text.h"
#include "common/base/readable.h"
#include "observability/api_json/job_request.h"
#include "observability/state/rows.h"

namespace rt::cli {
namespace {

using Stub = proto::HeadService::Stub;

// Key-value namespace and chunk size of packages, as in
// python/ray/_private/runtime_env/packaging.py.
constexpr char kNamespace[] = "pkg";
constexpr size_t kPackageChunkBytes = 16 << 20;

class RpcJobServer final : public JobServer {
 public:
  // Each answer of the head may take `timeout_us`, and its hello `hello_us`.
  RpcJobServer(Head head, int64_t timeout_us, int64_t hello_us)
      : head_(std::move(head)), timeout_us_(timeout_us), hello_us_(hello_us) {}

  const std::string& address() const override { return head_.address; }

  Result<std::string> submit(const std::string& body, const std::string& cwd) override {
    proto::SubmitJobRequest request;
    api_json::JobRequestError wrong;
    if (!api_json::parse_job_request(body, &request, &wrong))
      return make_error(Code::kInvalid, wrong.text);
    request.set_cwd(cwd);
    RT_ASSIGN(auto reply, ask(&Stub::SubmitJob, request));
    return reply.submission_id();
  }

  Result<proto::SubmittedJob> job(const std::string& id) override {
    auto reply = ask(&Stub::GetSubmittedJob, named(id));
    if (reply && !reply->jobs().empty()) return reply->jobs(0);
    if (!reply && reply.error().code != Code::kNotFound) return reply.error();
    RT_ASSIGN(api_json::Json row, driver(id));
    const std::string submitted = text_of(row, "submission_id");
    if (!submitted.empty()) return job(submitted);
    proto::SubmittedJob job;
    job.set_submission_id(id);
    job.set_status(text_of(row, "status"));
    job.set_message(text_of(row, "message"));
    return job;
  }

  Result<std::vector<api_json::Json>> jobs() override {
    proto::GetSnapshotRequest request;
    request.set_jobs(true);
    RT_ASSIGN(auto all, ask(&Stub::GetSnapshot, request));
    return state::job_rows(all);
  }

  Status stop(const std::string& id) override {
    RT_ASSIGN(std::string submitted, submission_of(id, "stop"));
    auto reply = ask(&Stub::StopSubmittedJob, named(submitted));
    if (!reply) return silent_node(submitted, reply.error(), ". The job stops when it does");
    return {};
  }

  Status remove(const std::string& id) override {
    RT_ASSIGN(std::string submitted, submission_of(id, "delete"));
    auto reply = ask(&Stub::DeleteSubmittedJob, named(submitted));
    if (!reply) return reply.error();
    return {};
  }

  Result<proto::JobLogsReply> logs(const proto::JobLogsRequest& request) override {
    // The head may wait that long for output.
    const int64_t wait_us = request.wait_ms() * 1000;
    proto::JobLogsRequest asked = request;
    auto reply = ask(&Stub::GetJobLogs, asked, wait_us);
    if (!reply && reply.error().code == Code::kNotFound) {
      RT_ASSIGN(*asked.mutable_submission_id(),
                submission_of(request.submission_id(), "get logs of"));
      reply = ask(&Stub::GetJobLogs, asked, wait_us);
    }
    if (!reply) return silent_node(asked.submission_id(), reply.error(), "");
    return reply;
  }

  Status upload(const std::string& name, const std::string& path) override {
    std::error_code unreadable;
    uint64_t size = std::filesystem::file_size(path, unreadable);
    if (unreadable)
      return make_error(Code::kIo, fmt::format("cannot read {}: {}", path, unreadable.message()));
    size_t chunks = (size + kPackageChunkBytes - 1) / kPackageChunkBytes;
    std::ifstream file(path, std::ios::binary);
    std::string chunk;
    Progress progress("Uploading");
    for (size_t i = 0; i < chunks; ++i) {
      progress.at(static_cast<int64_t>(i), static_cast<int64_t>(chunks),
                  binary_bytes(static_cast<double>(size)));
      chunk.resize(std::min<uint64_t>(kPackageChunkBytes, size - i * kPackageChunkBytes));
      if (!file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())))
        return make_error(Code::kIo, "cannot read " + path);
      RT_TRY(put(fmt::format("{}#{}", name, i), chunk));
    }
    return put(name, json_text(nlohmann::json{{"size", size}, {"chunks", chunks}}));
  }

  bool lost(const Error& error) const override {
    return error.code == Code::kUnavailable && !head_.client->connection()->is_open();
  }

  Status try_again() override {
    RT_ASSIGN(head_, connect_head(head_.address, hello_us_));
    return {};
  }

  void pause(int64_t us) override {
    bool never = false;
    head_.client->run_until(never, us);
  }

 private:
  template <class Method>
  Result<typename rpc::StubMethod<Method>::ReplyType> ask(
      Method method, const typename rpc::StubMethod<Method>::RequestType& request,
      int64_t more_us = 0) {
    return head_.client->call(method, request, timeout_us_ + more_us);
  }
  // Names the node if it is the reason. If the head has left a request unanswered for too long but
  // answers another one, it waits for the node of the job, and the error says so. Other errors stay
  // as they are.
  Error silent_node(const std::string& id, const Error& error, std::string_view more) {
    // The time that the user has set is over already, so this question gets a time of its own.
    constexpr int64_t kAnswersAtOnceUs = 1'000'000;
    if (error.code != Code::kTimeout) return error;
    auto reply = head_.client->call(&Stub::GetSubmittedJob, named(id),
                                    std::min(timeout_us_, kAnswersAtOnceUs));
    if (!reply || reply->jobs().empty() || reply->jobs(0).node_id().empty()) return error;
    return make_error(Code::kTimeout,
                      fmt::format("node {} of job {} has not answered within {} ms{}. `{} nodes` "
                                  "says what is known of it",
                                  to_hex(reply->jobs(0).node_id()), id, timeout_us_ / 1000, more,
                                  program_name()));
  }
  // Wraps a Json for Result<>: Json converts to and from too many types to be in a Result itself.
  struct Row {
    api_json::Json json;
    operator api_json::Json() && { return std::move(json); }
  };
  // The row of the driver with this job id.
  Result<Row> driver(const std::string& id) {
    if (id.empty()) return make_error(Code::kInvalid, "the id of the job is empty");
    RT_ASSIGN(auto rows, jobs());
    for (api_json::Json& row : rows) {
      if (text_of(row, "job_id") == id) return Row{std::move(row)};
    }
    return make_error(
        Code::kNotFound,
        fmt::format("Job {} does not exist (`{} job list` shows all)", id, program_name()));
  }
  // The submission id of a job, which `id` names by that id or by the job id of its driver.
  Result<std::string> submission_of(const std::string& id, const char* what) {
    auto reply = ask(&Stub::GetSubmittedJob, named(id));
    if (reply && !reply->jobs().empty()) return id;
    if (!reply && reply.error().code != Code::kNotFound) return reply.error();
    RT_ASSIGN(api_json::Json row, driver(id));
    std::string submitted = text_of(row, "submission_id");
    if (submitted.empty())
      return make_error(
          Code::kUnsupported,
          fmt::format("Can only {} submission type jobs: {} is a driver that was not submitted",
                      what, id));
    return submitted;
  }
  static proto::SubmittedJobRequest named(const std::string& id) {
    proto::SubmittedJobRequest request;
    request.set_submission_id(id);
    return request;
  }
  Status put(const std::string& key, const std::string& value) {
    proto::KvPutRequest request;
    request.set_ns(kNamespace);
    request.set_key(key);
    request.set_value(value);
    request.set_overwrite(true);
    auto reply = ask(&Stub::KvPut, request);
    if (!reply) return reply.error();
    return {};
  }

  Head head_;
  const int64_t timeout_us_, hello_us_;
};

}  // namespace

Result<std::unique_ptr<JobServer>> connect_job_server(const CommandLine& line) {
  RT_ASSIGN(const int64_t limit_us, timeout_us(line));
  std::string variable = "RAY_API_SERVER_ADDRESS", address = environment(variable.c_str());
  if (address.empty()) address = environment((variable = "RAY_ADDRESS").c_str());
  if (const std::string given = line.get("address"); address.empty()) {
    address = given;
    variable.clear();
  } else if (!given.empty() && given != address) {
    print(stderr,
          "Notice: {} is '{}', which goes before --address={} in job commands, as in Ray: unset it "
          "to reach the other.\n",
          variable, excerpt(address), excerpt(given));
  }
  if (address.starts_with("http://") || address.starts_with("https://"))
    return connect_http_job_server(address, line.get("headers", environment("RAY_JOB_HEADERS")),
                                   line.get("verify"), line.has("timeout") ? limit_us : 0);
  for (const char* name : {"verify", "headers"}) {
    if (line.has(name))
      print(stderr, "Notice: --{} has no effect: {} is the head itself, not http://HOST:PORT.\n",
            name, address.empty() ? "the address" : address);
  }
  RT_ASSIGN(const int64_t hello_us, connect_us(line));
  auto head = connect_head(address, hello_us);
  if (!head) {
    constexpr std::string_view kOption = "--address";
    std::string why = head.error().message;
    if (!variable.empty() && why.starts_with(kOption)) why.replace(0, kOption.size(), variable);
    return make_error(head.error().code, why);
  }
  return std::unique_ptr<JobServer>(
      std::make_unique<RpcJobServer>(std::move(*head), limit_us, hello_us));
}

}  // namespace rt::cli
