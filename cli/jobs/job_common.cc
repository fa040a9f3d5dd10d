#include "cli/jobs/job_common.h"

#include <fmt/core.h>

#include "cli/client/head_wait.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "common/base/utf8.h"

namespace rt::cli {
namespace {

constexpr int64_t kLogChunkBytes = 256 * 1024;
// The head answers such a long poll earlier if the log grows.
constexpr int64_t kFollowWaitMs = 1000;

// Repeats `question` while the head is lost, within the limits of `wait`. After a restart the head
// has the job's record at once but reconnects to the node with the output a moment later, so while
// an outage lasts other errors are retried as well.
template <class Question>
auto ask_patiently(JobServer& server, HeadWait& wait, Question question) -> decltype(question()) {
  for (;;) {
    auto answer = question();
    if (answer) {
      wait.found();
      return answer;
    }
    if (!wait.waiting() && !server.lost(answer.error())) return answer;
    RT_TRY(wait.lost(answer.error()));
    server.pause(HeadWait::kPauseUs);
    if (!server.lost(answer.error())) continue;
    if (Status again = server.try_again(); !again) RT_TRY(wait.lost(again.error()));
  }
}

}  // namespace

void declare_job_options(CommandLine& line) {
  line.option("address", "HOST:PORT|URL",
              "the cluster, or its HTTP interface ($RAY_API_SERVER_ADDRESS and $RAY_ADDRESS go "
              "before it; default: the one last started here)");
  line.option(
      "verify", "BOOL|FILE",
      "for an https:// address: whether its certificate is checked, or against which authorities "
      "(default true)");
  line.option(
      "headers", "JSON",
      "for an http:// address: more headers of each request, as {\"name\": \"text\"} (default: "
      "$RAY_JOB_HEADERS)");
  line.timeout_option("for each answer of the cluster (default 30, over HTTP 60)")
      .log_options()
      .hidden_flag("verbose,v");
}

bool is_terminal(const std::string& status) {
  return status == "SUCCEEDED" || status == "FAILED" || status == "STOPPED";
}

Result<proto::SubmittedJob> copy_log(JobServer& server, const std::string& submission_id,
                                     bool follow) {
  proto::JobLogsRequest request;
  request.set_submission_id(submission_id);
  request.set_max_bytes(kLogChunkBytes);
  request.set_wait_ms(follow ? kFollowWaitMs : 0);
  HeadWait wait(server.address());
  std::string told;
  for (;;) {
    auto reply = follow ? ask_patiently(server, wait, [&] { return server.logs(request); })
                        : server.logs(request);
    if (!reply) return reply.error();
    write_output(reply->data());
    RT_TRY(flush_to_reader());
    bool progressed = !reply->data().empty();
    // A job that no node has taken in all the time of a long poll may wait for long.
    const proto::SubmittedJob& job = reply->job();
    if (follow && job.status() == "PENDING" && job.node_id().empty() && job.message() != told) {
      told = job.message();
      print(stderr, "Notice: {}\n", printable(told));
    }
    request.set_offset(reply->next_offset());
    // The status in a reply is older than the data in it, so only a reply without data whose status
    // is terminal marks the end of the log.
    if (!progressed && (!follow || is_terminal(reply->job().status()))) break;
  }
  auto record = [&] { return server.job(submission_id); };
  return follow ? ask_patiently(server, wait, record) : record();
}

void print_status(const proto::SubmittedJob& job) {
  const std::string& id = job.submission_id();
  if (job.status() == "SUCCEEDED") {
    print("{}", boxed(fmt::format("Job '{}' succeeded", id)));
  } else if (job.status() == "STOPPED") {
    print("Warning: Job '{}' was stopped\n", id);
  } else if (job.status() == "FAILED") {
    print("{}Status message: {}\n", boxed(fmt::format("Job '{}' failed", id)), job.message());
  } else {
    print("Status for job '{}': {}\n", id, job.status());
    if (!job.message().empty()) print("Status message: {}\n", job.message());
  }
}

std::string shell_joined(const Words& words) {
  std::string line;
  for (const auto& word : words) {
    if (!line.empty()) line += ' ';
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (char c : word) line += c == '\'' ? std::string("'\"'\"'") : std::string(1, c);
    line += '\'';
  }
  return line;
}

int exit_code_of(const proto::SubmittedJob& job) {
  if (job.status() != "FAILED") return kExitOk;
  // The code belongs to the program that made the runtime environment, not to the entrypoint.
  if (job.error_type() == "RUNTIME_ENV_SETUP_FAILURE") return kExitFailure;
  int code = job.exit_code();
  if (code < 0) return 128 - code;
  return code > 0 && code < 256 ? code : kExitFailure;
}

}  // namespace rt::cli
