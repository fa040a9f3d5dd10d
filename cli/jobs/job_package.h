// Prepares the runtime environment of a job for submission: checks it, and packages and uploads the
// local folders it names.
#pragma once

#include <string>

#include "cli/jobs/job_server.h"

namespace rt::cli {

// Returns `env` (JSON) with URIs in place of local folders. The installation's Python (RAY_PYTHON,
// else /usr/bin/python3) checks the environment and makes the zip files; the error kInvalid carries
// what it reported.
Result<std::string> upload_runtime_env(JobServer& server, const std::string& env);

// Returns YAML as JSON, by the same Python, which takes PyYAML. The error is kInvalid for text that
// is no YAML, and kNotFound without PyYAML.
Result<std::string> json_of_yaml(const std::string& text);

}  // namespace rt::cli
