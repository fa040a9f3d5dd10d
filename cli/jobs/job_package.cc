#include "cli/jobs/job_package.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/terminal/print.h"
#include "common/base/environment.h"
#include "common/base/fd.h"
#include "common/base/json_text.h"

namespace rt::cli {
namespace {

// The output of a program that has ended.
struct ProgramOutput {
  std::string out, errors;
  int status = 0;  // In the form of waitpid().
};

// Runs a program and waits for its end. Its stdout comes through a pipe and its stderr goes to a
// file in memory: with two pipes, the program could block on the one that is not being read.
Result<ProgramOutput> run_program(const std::vector<std::string>& words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("cannot make a pipe", errno);
  Fd out(ends[0]), written(ends[1]), errors(::memfd_create("errors", MFD_CLOEXEC));
  if (!errors.valid()) return errno_error("cannot make a file in memory", errno);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, written.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, errors.get(), 2);
  pid_t pid = 0;
  int failed = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  written.reset();
  if (failed)
    return errno_error(
        fmt::format("cannot start {}, which packages the runtime environment (Debian: apt-get "
                    "install python3; RAY_PYTHON names another interpreter)",
                    words[0]),
        failed);
  ProgramOutput output;
  char buffer[65536];
  for (ssize_t n;
       (n = ::read(out.get(), buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR);) {
    if (n > 0) output.out.append(buffer, static_cast<size_t>(n));
  }
  while (::waitpid(pid, &output.status, 0) < 0 && errno == EINTR) {}
  ssize_t n = ::pread(errors.get(), buffer, sizeof buffer, 0);
  output.errors.assign(buffer, n > 0 ? static_cast<size_t>(n) : 0);
  while (output.errors.ends_with('\n')) output.errors.pop_back();
  return output;
}

std::string python() {
  const std::string given = environment("RAY_PYTHON");
  return given.empty() ? "/usr/bin/python3" : given;
}

}  // namespace

Result<std::string> json_of_yaml(const std::string& text) {
  constexpr int kNoModule = 3;
  const std::string program = fmt::format(
      "import json, sys\n"
      "try:\n    import yaml\n"
      "except ImportError:\n    sys.exit({})\n"
      "try:\n    print(json.dumps(yaml.safe_load(sys.argv[1])))\n"
      "except (TypeError, ValueError, yaml.YAMLError) as error:\n"
      "    sys.exit(' '.join(str(error).split()))",
      kNoModule);
  RT_ASSIGN(ProgramOutput output, run_program({python(), "-c", program, text}));
  if (WIFEXITED(output.status) && WEXITSTATUS(output.status) == kNoModule)
    return make_error(Code::kNotFound,
                      fmt::format("reading YAML takes PyYAML, which {} lacks (Debian: apt-get "
                                  "install python3-yaml): install it, or write the file as JSON",
                                  python()));
  if (output.status != 0) return make_error(Code::kInvalid, output.errors);
  return output.out;
}

Result<std::string> upload_runtime_env(JobServer& server, const std::string& env) {
  std::error_code ignored;
  std::string here =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
  // The `ray` package is found relative to this program: in a build tree, an installation, a wheel.
  const char* program =
      "import sys; here = sys.argv.pop(1); sys.path[:0] = [here + '/../python', here + "
      "'/../lib/ray-runtime/python', here + '/../..']; "
      "from ray._private.runtime_env.pack import main; main()";
  RT_ASSIGN(ProgramOutput output, run_program({python(), "-c", program, here, env}));
  if (output.status != 0)
    return make_error(Code::kInvalid, "the runtime environment is refused: " + output.errors);
  nlohmann::json packed = parse_json(output.out);
  if (!packed.is_object())
    return make_error(Code::kInternal,
                      "the runtime environment could not be packaged: " + output.errors);
  if (!output.errors.empty()) print(stderr, "{}\n", output.errors);
  Status sent;
  for (const auto& item : packed["uploads"]) {
    std::string path = item["path"].get<std::string>();
    if (sent) sent = server.upload(item["name"].get<std::string>(), path);
    if (item["temporary"].get<bool>()) std::filesystem::remove(path, ignored);
  }
  if (!sent) return sent.error();
  return json_text(packed["fields"]);
}

}  // namespace rt::cli
