// What the job commands share: one job's record, its output as it grows, how its end is told.
#pragma once

#include <string>

#include "cli/job_server.h"

namespace rt::cli {

// --address and the options of Ray's HTTP client.
void declare_job_options(CommandLine& line);

bool is_terminal(const std::string& status);
// Writes the log to stdout; `follow`: until the job has ended. A head that restarts meanwhile is
// reconnected to. Returns the job's last record.
Result<proto::SubmittedJob> copy_log(JobServer& server, const std::string& submission_id,
                                     bool follow);
void print_status(const proto::SubmittedJob& job);
// Words as a shell would have to read them to get the same words.
std::string shell_joined(const Words& words);
// Of the command that followed the job: the entrypoint's own code, 128 + signal, 1 when it never
// ran; 0 for SUCCEEDED and STOPPED.
int exit_code_of(const proto::SubmittedJob& job);

}  // namespace rt::cli
