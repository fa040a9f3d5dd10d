#include <filesystem>
#include <fmt/core.h>
#include <fstream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/job_common.h"
#include "cli/job_package.h"
#include "cli/output.h"

namespace rt::cli {
namespace {

constexpr const char* kAbsent[] = {"entrypoint-num-cpus", "entrypoint-num-gpus",
                                   "entrypoint-memory", "entrypoint-resources", "entrypoint-label-selector"};

Status fill_metadata(const CommandLine& line, proto::SubmitJobRequest* request) {
  if (!line.has("metadata-json")) return {};
  auto json = nlohmann::json::parse(line.get("metadata-json"), nullptr, false);
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) {
      if (!value.is_string()) json = nullptr;
      if (!json.is_object()) break;
      (*request->mutable_metadata())[name] = value.get<std::string>();
    }
  }
  if (!json.is_object()) return make_error(Code::kInvalid, fmt::format("--metadata-json is '{}': it takes a JSON object of strings", echoed(line.get("metadata-json"))));
  return {};
}

// Jobs are stored, listed and sent as text.
Status check_text(const char* what, const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return {};
  } catch (const nlohmann::json::type_error&) {
    return make_error(Code::kUnsupported, fmt::format("{} is not valid UTF-8: jobs take text only; let the program read such bytes from a file", what));
  }
}

// JSON; empty: none is asked for.
Result<std::string> runtime_env_of(const CommandLine& line) {
  std::string text = line.get("runtime-env-json"), source = "--runtime-env-json";
  if (line.has("runtime-env")) {
    if (line.has("runtime-env-json")) return make_error(Code::kInvalid, "Only one of --runtime-env and --runtime-env-json can be provided.");
    source = fmt::format("--runtime-env (file {})", line.get("runtime-env"));
    std::ifstream file(line.get("runtime-env"));
    if (!file) return make_error(Code::kInvalid, fmt::format("{} cannot be read", source));
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  nlohmann::json env = text.empty() ? nlohmann::json::object() : nlohmann::json::parse(text, nullptr, false);
  if (!env.is_object()) return make_error(Code::kInvalid, fmt::format("{} is no JSON object", source));
  if (line.has("working-dir")) {
    RT_TRY(check_text("the name of the working directory", line.get("working-dir")));
    env["working_dir"] = line.get("working-dir");
  }
  return env.empty() ? std::string() : env.dump();
}

Result<int> submit(const CommandLine& line) {
  for (const char* name : kAbsent) {
    if (line.has(name)) return make_error(Code::kUnsupported, fmt::format("--{} is not available in this release", name));
  }
  proto::SubmitJobRequest request;
  request.set_entrypoint(shell_joined(line.rest_words()));
  request.set_submission_id(line.has("submission-id") ? line.get("submission-id") : line.get("job-id"));
  RT_TRY(fill_metadata(line, &request));
  std::error_code unreadable;
  request.set_cwd(std::filesystem::current_path(unreadable).string());
  RT_TRY(check_text("the command", request.entrypoint()));
  RT_TRY(check_text("the submission id", request.submission_id()));
  RT_TRY(check_text("the name of the current directory", request.cwd()));
  RT_ASSIGN(std::string runtime_env, runtime_env_of(line));
  RT_ASSIGN(Head head, connect_job_head(line));
  if (!runtime_env.empty()) {
    RT_ASSIGN(std::string uploaded, upload_runtime_env(head, runtime_env));
    request.set_runtime_env_json(uploaded);
  }
  fmt::print("Job submission server address: {}\n", head.address);
  RT_ASSIGN(auto reply, head.client->call(&proto::HeadService::Stub::SubmitJob, request));
  const std::string& id = reply.submission_id();
  fmt::print("\n{}\n", boxed(fmt::format("Job '{}' submitted successfully", id)));
  fmt::print("Next steps\n  Its output:\n    {0} job logs {1}\n  How it is doing:\n    {0} job status {1}\n  To end it:\n    {0} job stop {1}\n\n", program_name(), id);
  if (line.has("no-wait")) return kExitOk;
  fmt::print("Tailing logs until the job exits (disable with --no-wait):\n");
  RT_TRY(flush_output());
  RT_ASSIGN(auto job, copy_log(head, id, /*follow=*/true));
  fmt::print("\n");
  print_status(job);
  return exit_code_of(job);
}

}  // namespace

int run_job_submit(const Words& words) {
  CommandLine line("job submit", "Runs a program on the cluster, follows its output, and exits with its exit code.");
  declare_job_options(line);
  line.option("submission-id", "ID", "name of the job (default: a new one)")
      .option("metadata-json", "JSON", "strings to keep with the job")
      .option("working-dir", "DIR", "folder (uploaded) or URI of an archive: the program's directory, on every node")
      .option("runtime-env-json", "JSON", "runtime environment of the program and its workers (docs/runtime-environments.md)")
      .option("runtime-env", "FILE", "the same, from a file")
      .flag("no-wait", "return once the job is submitted")
      .hidden_option("job-id")
      .rest("COMMAND...");
  for (const char* name : kAbsent) line.hidden_option(name);
  if (auto code = line.parse(words)) return *code;
  if (line.rest_words().empty()) return usage_error("job submit", "the command to run is missing: job submit -- python my_program.py");
  auto code = submit(line);
  if (!code && code.error().code == Code::kInvalid && line.has("metadata-json")) return usage_error("job submit", code.error().message);
  return finish(code);
}

}  // namespace rt::cli
