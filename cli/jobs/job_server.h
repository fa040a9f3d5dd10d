// The server that the job commands talk to: the head over RPC (HOST:PORT, "auto"), or an HTTP
// interface of the Jobs API (http://HOST:PORT).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/terminal/command_line.h"
#include "common/proto/head.pb.h"
#include "observability/api_json/node_json.h"

namespace rt::cli {

// One connection to a server. All methods block; one thread uses the object. Where a method takes
// the id of a job, that is its submission id; job(), stop(), remove() and logs() also accept the
// job id of its driver.
class JobServer {
 public:
  virtual ~JobServer() = default;

  // The address for messages, after "auto" and defaults have been resolved.
  virtual const std::string& address() const = 0;
  // `body` is the JSON of POST /api/jobs/. `cwd` is the submitter's working directory, where the
  // entrypoint runs if its node has that directory; not sent over HTTP. Returns the submission id.
  virtual Result<std::string> submit(const std::string& body, const std::string& cwd) = 0;
  // Over HTTP only id, status, message, error type and exit code are filled in.
  virtual Result<proto::SubmittedJob> job(const std::string& id) = 0;
  // Submitted jobs and drivers, as the objects that GET /api/jobs/ returns.
  virtual Result<std::vector<api_json::Json>> jobs() = 0;
  virtual Status stop(const std::string& id) = 0;
  virtual Status remove(const std::string& id) = 0;
  // Only the status of the reply's job is always filled in.
  virtual Result<proto::JobLogsReply> logs(const proto::JobLogsRequest& request) = 0;
  // Uploads the file at `path` as the package `name` of a runtime environment.
  virtual Status upload(const std::string& name, const std::string& path) = 0;
  // Whether `error` means that the server is away and may come back. The caller then pauses and
  // calls try_again(), which reconnects.
  virtual bool lost(const Error& error) const = 0;
  virtual Status try_again() = 0;
  // Sleeps, and keeps the connection alive meanwhile.
  virtual void pause(int64_t us) = 0;
};

// Connects as --address and --headers say; $RAY_API_SERVER_ADDRESS and then $RAY_ADDRESS take
// precedence over the option, as in Ray.
Result<std::unique_ptr<JobServer>> connect_job_server(const CommandLine& line);
// `address` is http[s]://HOST:PORT[/PATH]; `headers` is a JSON object or empty; `verify` is the
// value of --verify; each answer may take `timeout_us` (0: a minute). Returns kUnavailable when
// nothing answers.
Result<std::unique_ptr<JobServer>> connect_http_job_server(const std::string& address,
                                                           const std::string& headers,
                                                           const std::string& verify,
                                                           int64_t timeout_us);

}  // namespace rt::cli
