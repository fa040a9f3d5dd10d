// Whom the job commands ask: the head over RPC (HOST:PORT, "auto"), or an HTTP interface
// (http://HOST:PORT).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "common/api_json/node_json.h"
#include "common/proto/head.pb.h"

namespace rt::cli {

class JobServer {
 public:
  virtual ~JobServer() = default;

  // As it was found, for people.
  virtual const std::string& address() const = 0;
  // `body`: JSON as of POST /api/jobs/. `cwd`: of the submitter, where the server can use it.
  // Returns the submission id.
  virtual Result<std::string> submit(const std::string& body, const std::string& cwd) = 0;
  // Over HTTP just its id, status, message and exit code.
  virtual Result<proto::SubmittedJob> job(const std::string& id) = 0;
  // Submitted ones and drivers: the objects of GET /api/jobs/.
  virtual Result<std::vector<api_json::Json>> jobs() = 0;
  virtual Status stop(const std::string& id) = 0;
  virtual Status remove(const std::string& id) = 0;
  // Of the reply's job only the status is sure.
  virtual Result<proto::JobLogsReply> logs(const proto::JobLogsRequest& request) = 0;
  // A package of the runtime environment.
  virtual Status upload(const std::string& name, const std::string& path) = 0;
  // Whether `error` means that the server is away and may come back; then try_again() after a
  // while.
  virtual bool lost(const Error& error) const = 0;
  virtual Status try_again() = 0;
  // Keeps the connection alive meanwhile.
  virtual void pause(int64_t us) = 0;
};

// --address, --headers; $RAY_API_SERVER_ADDRESS and $RAY_ADDRESS win over the option.
Result<std::unique_ptr<JobServer>> connect_job_server(const CommandLine& line);
// http://HOST:PORT[/PATH]; `headers`: a JSON object, or empty. kUnavailable when nobody answers.
Result<std::unique_ptr<JobServer>> connect_http_job_server(const std::string& address,
                                                           const std::string& headers,
                                                           const std::string& verify);

}  // namespace rt::cli
