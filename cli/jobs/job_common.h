// Shared by the job commands: common options, following a job's output, and reporting its end.
#pragma once

#include <string>

#include "cli/jobs/job_server.h"

namespace rt::cli {

// Declares --address and the options of Ray's HTTP client.
void declare_job_options(CommandLine& line);

// Whether a job with this status has ended.
bool is_terminal(const std::string& status);
// Writes the job's log to stdout and returns the job's latest record. With `follow` it goes on
// until the job has ended, and reconnects to a head that restarts meanwhile.
Result<proto::SubmittedJob> copy_log(JobServer& server, const std::string& submission_id,
                                     bool follow);
void print_status(const proto::SubmittedJob& job);
// Joins `words` into one line, quoted so that a shell splits it into the same words.
std::string shell_joined(const Words& words);
// The exit code for a command that followed `job` to its end: 0 for SUCCEEDED and STOPPED, else the
// entrypoint's own code, 128 + signal, or 1 when the entrypoint never ran.
int exit_code_of(const proto::SubmittedJob& job);

}  // namespace rt::cli
