// The job commands over HTTP. They work with any server of the Jobs REST interface, except for
// logs, which are read in pieces that only servers of this project hand out.
#include <fmt/core.h>
#include <httplib.h>
#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/client/head_client.h"
#include "cli/jobs/job_server.h"
#include "cli/terminal/output.h"
#include "cli/terminal/progress.h"
#include "common/base/http_status.h"
#include "common/base/json_text.h"
#include "common/base/percent.h"
#include "common/base/readable.h"
#include "common/base/utf8.h"
#include "common/http/client_tls.h"
#include "observability/state/over_http.h"

namespace rt::cli {
namespace {

using api_json::Json;

constexpr time_t kConnectSeconds = 3, kReadSeconds = 60, kOutputWaitSeconds = 1;
constexpr size_t kPieceBytes = 1 << 20;  // Each write of an uploaded package has so many bytes.
constexpr char kNextOffset[] = "X-Ray-Next-Offset", kJobStatus[] = "X-Ray-Job-Status";

proto::SubmittedJob job_of(const Json& details) {
  proto::SubmittedJob job;
  job.set_submission_id(text_of(details, "submission_id"));
  job.set_status(text_of(details, "status"));
  job.set_message(text_of(details, "message"));
  job.set_error_type(text_of(details, "error_type"));
  job.set_exit_code(static_cast<int32_t>(number_of(details, "driver_exit_code")));
  return job;
}

class HttpJobServer final : public JobServer {
 public:
  HttpJobServer(std::string address, const std::string& host, std::string base,
                httplib::Headers headers, time_t timeout_s)
      : address_(std::move(address)), base_(std::move(base)), client_(host) {
    client_.set_default_headers(std::move(headers));
    client_.set_connection_timeout(std::min(timeout_s, kConnectSeconds));
    // The head may wait for a second before it answers that there is no new output.
    client_.set_read_timeout(timeout_s + kOutputWaitSeconds);
    client_.set_keep_alive(true);
  }

  const std::string& address() const override { return address_; }
  void set_trusted_certificates(const std::string& verify) {
    http::set_trusted_certificates(client_, verify);
  }

  Result<std::string> submit(const std::string& body, const std::string&) override {
    RT_ASSIGN(Json answer,
              json_of(client_.Post((base_ + "/api/jobs/").c_str(), body, "application/json")));
    return text_of(answer, "submission_id");
  }

  Result<proto::SubmittedJob> job(const std::string& id) override {
    RT_ASSIGN(Json answer, json_of(client_.Get(path(id).c_str())));
    proto::SubmittedJob job = job_of(answer);
    // The job is a driver that was started by hand.
    if (job.submission_id().empty()) job.set_submission_id(id);
    return job;
  }

  Result<std::vector<Json>> jobs() override {
    RT_ASSIGN(Json rows, json_of(client_.Get((base_ + "/api/jobs/").c_str())));
    if (!rows.is_array()) return other_interface();
    return std::vector<Json>(rows.begin(), rows.end());
  }

  Status stop(const std::string& id) override {
    return done(client_.Post((path(id) + "/stop").c_str(), "", "application/json"));
  }
  Status remove(const std::string& id) override { return done(client_.Delete(path(id).c_str())); }

  Result<proto::JobLogsReply> logs(const proto::JobLogsRequest& request) override {
    auto answer =
        client_.Get(fmt::format("{}/logs?offset={}&wait_ms={}", path(request.submission_id()),
                                request.offset(), request.wait_ms())
                        .c_str());
    RT_TRY(check(answer));
    if (!answer->has_header(kNextOffset)) {
      return make_error(Code::kUnsupported,
                        fmt::format("{} does not hand out logs in pieces: it is no server of this "
                                    "version. Its own client follows jobs.",
                                    address_));
    }
    proto::JobLogsReply reply;
    reply.set_data(std::move(answer->body));
    reply.set_next_offset(std::strtoll(answer->get_header_value(kNextOffset).c_str(), nullptr, 10));
    reply.mutable_job()->set_submission_id(request.submission_id());
    reply.mutable_job()->set_status(answer->get_header_value(kJobStatus));
    return reply;
  }

  Status upload(const std::string& name, const std::string& file_path) override {
    std::error_code unreadable;
    const uint64_t size = std::filesystem::file_size(file_path, unreadable);
    std::ifstream file(file_path, std::ios::binary);
    if (unreadable || !file) return make_error(Code::kIo, "cannot read " + file_path);
    Progress progress("Uploading");
    std::string piece;
    auto next = [&](size_t offset, size_t length, httplib::DataSink& sink) {
      progress.at(static_cast<int64_t>(offset), static_cast<int64_t>(size),
                  binary_bytes(static_cast<double>(size)));
      piece.resize(std::min(length, kPieceBytes));
      file.seekg(static_cast<std::streamoff>(offset));
      return file.read(piece.data(), static_cast<std::streamsize>(piece.size())) &&
             sink.write(piece.data(), piece.size());
    };
    auto answer = client_.Put((base_ + "/api/packages/gcs/" + percent_encoded(name)).c_str(), size,
                              next, "application/octet-stream");
    if (!file) return make_error(Code::kIo, "cannot read " + file_path);
    return done(answer);
  }

  bool lost(const Error& error) const override { return error.code == Code::kUnavailable; }
  Status try_again() override { return done(client_.Get((base_ + "/api/version").c_str())); }
  void pause(int64_t us) override { ::poll(nullptr, 0, static_cast<int>(us / 1000)); }

 private:
  std::string path(const std::string& id) const {
    return base_ + "/api/jobs/" + percent_encoded(id);
  }

  Status check(const httplib::Result& answer) const {
    if (!answer && http::is_untrusted(answer.error())) {
      return make_error(
          Code::kUnauthenticated,
          fmt::format("{} shows a certificate that is not trusted here: RAY_TLS_CA_CERT or "
                      "--verify=FILE names the authorities' file (docs/tls.md)",
                      address_));
    }
    if (!answer)
      return make_error(Code::kUnavailable,
                        fmt::format("no HTTP server answers at {} ({}): is the head running, and "
                                    "is this its dashboard's address?",
                                    address_, httplib::to_string(answer.error())));
    if (answer->status < 400) return {};
    if (answer->status == 401 || answer->status == 403)
      return state::token_refused(address_, answer->body);
    return make_error(
        code_of_http_status(answer->status),
        fmt::format("{} (HTTP status {} of {})", answer->body, answer->status, address_));
  }
  Status done(const httplib::Result& answer) const { return check(answer); }
  // Wraps a Json for Result<>: Json converts to and from too many types to be in a Result itself.
  struct Parsed {
    Json json;
    operator Json() && { return std::move(json); }
  };
  Result<Parsed> json_of(const httplib::Result& answer) const {
    RT_TRY(check(answer));
    Parsed parsed{parse_ordered_json(answer->body)};
    if (parsed.json.is_discarded()) return other_interface();
    return parsed;
  }
  Error other_interface() const {
    return make_error(Code::kUnavailable,
                      fmt::format("{} answers, but not as a Jobs interface", address_));
  }

  std::string address_, base_;
  httplib::Client client_;
};

}  // namespace

Result<std::unique_ptr<JobServer>> connect_http_job_server(const std::string& address,
                                                           const std::string& given_headers,
                                                           const std::string& verify,
                                                           int64_t timeout_us) {
  size_t begin = address.find("://") + 3, slash = address.find('/', begin);
  std::string host = address.substr(0, slash),
              base = slash == std::string::npos ? "" : address.substr(slash);
  while (base.ends_with('/')) base.pop_back();
  if (host.size() == begin)
    return make_error(Code::kInvalid,
                      fmt::format("'{}' is not an address: use http://HOST:PORT", address));
  httplib::Headers headers;
  if (!given_headers.empty()) {
    Json json = parse_ordered_json(given_headers);
    if (!json.is_object())
      return make_error(Code::kInvalid,
                        "--headers (or RAY_JOB_HEADERS) is no JSON object of headers");
    for (const auto& [name, value] : json.items()) {
      const std::string text = value.is_string() ? value.get<std::string>() : "";
      if (!value.is_string() || name.empty() || printable(text) != text ||
          printable(name) != name || name.find_first_of(" :") != std::string::npos) {
        return make_error(
            Code::kInvalid,
            fmt::format("--headers (or RAY_JOB_HEADERS): '{}' is {}: it takes an object of names "
                        "and texts of one line",
                        excerpt(name), excerpt(json_text(value))));
      }
      headers.emplace(name, text);
    }
  }
  if (!headers.contains("Authorization")) {
    RT_ASSIGN(std::string token, client_token());
    if (!token.empty()) headers.emplace("Authorization", "Bearer " + token);
  }
  RT_TRY(state::probe_http(host, verify));
  auto server =
      std::make_unique<HttpJobServer>(address, host, base, std::move(headers),
                                      timeout_us > 0 ? timeout_us / 1'000'000 : kReadSeconds);
  server->set_trusted_certificates(verify);
  RT_TRY(server->try_again());
  return std::unique_ptr<JobServer>(std::move(server));
}

}  // namespace rt::cli
