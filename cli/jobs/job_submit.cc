// `rayctl job submit`: submits a program as a job and follows its output.
#include <fmt/core.h>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/jobs/job_common.h"
#include "cli/jobs/job_package.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "common/base/json_text.h"
#include "common/base/small_file.h"
#include "common/base/utf8.h"

namespace rt::cli {
namespace {

using Json = nlohmann::json;

// Copies an option whose value is a JSON object of `what` ("numbers" or "strings") into `field` of
// the request. kInvalid if the value is anything else.
Status take_object(const CommandLine& line, const char* option, const char* field, const char* what,
                   Json* request) {
  if (!line.has(option)) return {};
  Json value = parse_json(line.get(option));
  bool good = value.is_object();
  if (good) {
    for (const Json& item : value)
      good = good && (std::string_view(what) == "numbers" ? item.is_number() : item.is_string());
  }
  if (!good)
    return make_error(Code::kInvalid, fmt::format("--{} is '{}': it takes a JSON object of {}",
                                                  option, excerpt(line.get(option)), what));
  (*request)[field] = std::move(value);
  return {};
}

// The same for an option that takes a number from 0, or with `whole` a whole one.
Status take_number(const CommandLine& line, const char* option, const char* field, bool whole,
                   Json* request) {
  if (!line.has(option)) return {};
  Json value = parse_json(line.get(option));
  if (!(whole ? value.is_number_unsigned() : value.is_number()) || value.get<double>() < 0) {
    return make_error(Code::kInvalid,
                      fmt::format("--{} is '{}': it takes a {}number from 0", option,
                                  excerpt(line.get(option)), whole ? "whole " : ""));
  }
  (*request)[field] = std::move(value);
  return {};
}

// The body of POST /api/jobs/, without the runtime environment.
Result<std::string> submit_request(const CommandLine& line) {
  Json request{{"entrypoint", shell_joined(line.rest_words())}};
  std::string id = line.get("submission-id", line.get("job-id"));
  if (!id.empty()) request["submission_id"] = id;
  RT_TRY(take_object(line, "metadata-json", "metadata", "strings", &request));
  RT_TRY(take_number(line, "entrypoint-num-cpus", "entrypoint_num_cpus", false, &request));
  RT_TRY(take_number(line, "entrypoint-num-gpus", "entrypoint_num_gpus", false, &request));
  RT_TRY(take_number(line, "entrypoint-memory", "entrypoint_memory", true, &request));
  RT_TRY(take_object(line, "entrypoint-resources", "entrypoint_resources", "numbers", &request));
  RT_TRY(take_object(line, "entrypoint-label-selector", "entrypoint_label_selector", "strings",
                     &request));
  return json_text(request);
}

// Refuses text that is not UTF-8, because jobs are sent and listed as JSON.
// `what` names the text in the message.
Status check_text(const char* what, const std::string& text) {
  if (valid_utf8(text) == text) return {};
  return make_error(Code::kUnsupported, fmt::format("{} is not valid UTF-8: jobs take text only; "
                                                    "let the program read such bytes from a file",
                                                    what));
}

// The runtime environment that the options describe, as a JSON object; empty if there is none.
Result<std::string> runtime_env_of(const CommandLine& line) {
  std::string text = line.get("runtime-env-json"), source = "--runtime-env-json";
  if (line.has("runtime-env")) {
    if (line.has("runtime-env-json"))
      return make_error(Code::kInvalid,
                        "Only one of --runtime-env and --runtime-env-json can be provided.");
    source = fmt::format("--runtime-env (file {})", line.get("runtime-env"));
    auto given = read_small_file(line.get("runtime-env"));
    if (!given)
      return make_error(Code::kInvalid,
                        fmt::format("{} cannot be read: {}", source, given.error().message));
    text = std::move(*given);
    if (!parse_json(text).is_object()) {
      auto json = json_of_yaml(text);
      if (!json)
        return make_error(json.error().code, fmt::format("{}: {}", source, json.error().message));
      text = std::move(*json);
    }
  }
  nlohmann::json env = text.empty() ? nlohmann::json::object() : parse_json(text);
  if (!env.is_object())
    return make_error(Code::kInvalid, fmt::format("{} is no {}object", source,
                                                  line.has("runtime-env") ? "" : "JSON "));
  if (line.has("working-dir")) {
    const std::string folder = line.get("working-dir");
    // The packaging in Python handles "~" and the content of the folder.
    std::error_code unreadable;
    if (folder.find("://") == std::string::npos && !folder.starts_with('~') &&
        !std::filesystem::exists(folder, unreadable))
      return make_error(Code::kInvalid, fmt::format("--working-dir is '{}': there is no such "
                                                    "folder or .zip file, and it is no URI",
                                                    excerpt(folder)));
    env["working_dir"] = folder;
  }
  return env.empty() ? std::string() : json_text(env);
}

Result<int> submit(const CommandLine& line, const std::string& request,
                   const std::string& runtime_env) {
  std::error_code unreadable;
  std::string here = std::filesystem::current_path(unreadable).string();
  // With a working_dir the program does not run here, so that the name does not matter.
  if (line.has("working-dir")) here = valid_utf8(here);
  RT_TRY(check_text("the name of the current directory", here));
  RT_ASSIGN(auto server, connect_job_server(line));
  std::string body = request;
  if (!runtime_env.empty()) {
    RT_ASSIGN(std::string uploaded, upload_runtime_env(*server, runtime_env));
    Json with_env = parse_json(request);
    with_env["runtime_env"] = parse_json(uploaded);
    body = json_text(with_env);
  }
  print("Job submission server address: {}\n", server->address());
  RT_ASSIGN(std::string id, server->submit(body, here));
  print("\n{}\n", boxed(fmt::format("Job '{}' submitted successfully", id)));
  print(
      "Next steps\n  Its output:\n    {0} job logs {1}\n  How it is doing:\n    {0} job status "
      "{1}\n  To end it:\n    {0} job stop {1}\n\n",
      program_name(), id);
  if (line.has("no-wait")) return kExitOk;
  print("Tailing logs until the job exits (disable with --no-wait):\n");
  RT_TRY(flush_output());
  RT_ASSIGN(auto job, copy_log(*server, id, /*follow=*/true));
  print("\n");
  print_status(job);
  return exit_code_of(job);
}

}  // namespace

int run_job_submit(const Words& words) {
  CommandLine line(
      "job submit",
      "Runs a program on the cluster, follows its output, and exits with its exit code.");
  declare_job_options(line);
  line.option("submission-id", "ID", "name of the job (default: a new one)")
      .option("metadata-json", "JSON", "strings to keep with the job")
      .option("working-dir", "DIR",
              "folder (uploaded) or URI of an archive: the program's directory, on every node")
      .option("runtime-env-json", "JSON",
              "runtime environment of the program and its workers (docs/runtime-environments.md)")
      .option("runtime-env", "FILE", "the same, from a file of YAML or JSON")
      .option("entrypoint-num-cpus", "N",
              "CPUs held for the command itself while it runs, on whichever node has them "
              "(default: none, on the head's node)")
      .option("entrypoint-num-gpus", "N", "GPUs held for the command itself while it runs")
      .option("entrypoint-memory", "BYTES", "memory held for the command itself while it runs")
      .option("entrypoint-resources", "JSON",
              "amounts of other resources held for the command itself while it runs")
      .option("entrypoint-label-selector", "JSON", "labels of the node that runs the command")
      .flag("no-wait", "return once the job is submitted")
      .hidden_option("job-id")
      .rest("COMMAND...");
  if (auto code = line.parse(words)) return *code;
  if (!line.rest_words().empty() && line.rest_words()[0].empty())
    return usage_error("job submit", "the command to run is empty");
  if (line.rest_words().empty())
    return usage_error("job submit",
                       "the command to run is missing: job submit -- python my_program.py");
  Status text = check_text("the command", shell_joined(line.rest_words()));
  if (!text) return failure(text.error());
  auto request = submit_request(line);
  if (!request) return usage_error("job submit", request.error().message);
  auto runtime_env = runtime_env_of(line);
  if (!runtime_env)
    return runtime_env.error().code == Code::kInvalid
               ? usage_error("job submit", runtime_env.error().message)
               : failure(runtime_env.error());
  return finish(submit(line, *request, *runtime_env));
}

}  // namespace rt::cli
