// The runtime environment of a job that is submitted: checked, local folders packaged and uploaded.
#pragma once

#include <string>

#include "cli/job_server.h"

namespace rt::cli {

// `env` (JSON) with URIs in place of local folders. The checks and the zip files are made by the
// installation's Python (RAY_PYTHON); kInvalid says what is wrong.
Result<std::string> upload_runtime_env(JobServer& server, const std::string& env);

}  // namespace rt::cli
