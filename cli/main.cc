// The program rayctl, also installed as `ray`: finds the command by its name and runs it.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <filesystem>

#include "cli/commands.h"
#include "cli/terminal/help_text.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/terminal/suggest.h"

namespace rt::cli {
namespace {

constexpr Command kHidden[] = {{"settings-doc", run_settings_doc, ""},
                               {"command-doc", run_command_doc, ""},
                               {"man-pages", run_man_pages, ""},
                               {"__complete", run_complete, ""}};

// Commands of Ray's that do not exist here, with what they would need. Naming them in the error
// message is more helpful than a suggestion for a mistyped word.
constexpr std::pair<const char*, const char*> kAbsent[] = {
    {"attach", "the cluster launcher"},
    {"cluster-dump", "the cluster launcher"},
    {"dashboard", "the cluster launcher"},
    {"down", "the cluster launcher"},
    {"exec", "the cluster launcher"},
    {"get-head-ip", "the cluster launcher"},
    {"get-worker-ips", "the cluster launcher"},
    {"kill-random-node", "the cluster launcher"},
    {"kuberay-autoscaler", "the cluster launcher"},
    {"local-dump", "the cluster launcher"},
    {"monitor", "the cluster launcher"},
    {"rsync-down", "the cluster launcher"},
    {"rsync-up", "the cluster launcher"},
    {"submit", "the cluster launcher"},
    {"up", "the cluster launcher"},
    {"check-open-ports", "asking a service outside the cluster"},
    {"cpp", "the C++ project generator"},
    {"disable-usage-stats", "collecting usage statistics"},
    {"enable-usage-stats", "collecting usage statistics"},
    {"global-gc", "collecting garbage everywhere"},
    {"sanity-check", "the sanity check (`microbenchmark` runs tasks)"},
    {"symmetric-run", "running one command on every node"}};

// Returns the number of words that the global options of Ray's command line take in front of the
// command. Their values are checked and then ignored, because this program writes no log. Levels
// are taken in any case, as by Ray, and also under the other names that Python's logging has for
// them.
Result<size_t> skip_global_options(const Words& words) {
  static const Words kLevels = {"debug", "info",     "warning", "warn",
                                "error", "critical", "fatal",   "notset"};
  size_t at = 0;
  while (at < words.size() &&
         (words[at].starts_with("--logging-level") || words[at].starts_with("--logging-format"))) {
    size_t equals = words[at].find('=');
    std::string name = words[at].substr(0, equals),
                value = equals == std::string::npos ? "" : words[at].substr(equals + 1);
    if (name != "--logging-level" && name != "--logging-format") break;
    if (equals == std::string::npos) {
      if (++at == words.size()) return make_error(Code::kInvalid, name + " needs a value");
      value = words[at];
    }
    std::string level = value;
    for (char& c : level) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name == "--logging-level" &&
        std::find(kLevels.begin(), kLevels.end(), level) == kLevels.end()) {
      return make_error(
          Code::kInvalid,
          fmt::format("--logging-level is '{}': it takes debug, info, warning, error or critical",
                      excerpt(value)));
    }
    ++at;
  }
  return at;
}

int report_unknown_command(const std::string& word) {
  Words known = command_names();
  if (word.starts_with("-"))
    return usage_error(
        "", "no such option: " + excerpt(word) +
                did_you_mean(word, {"--help", "--version", "--logging-level", "--logging-format"}));
  for (const auto& [name, what] : kAbsent) {
    if (word == name)
      return usage_error(
          "", fmt::format("no such command: {} ({} is not part of this release)", word, what));
  }
  return usage_error("", "no such command: " + excerpt(word) + did_you_mean(word, known));
}

int dispatch(const Words& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    print("{}", commands_text("", command_infos()));
    return words.empty() ? kExitUsage : kExitOk;
  }
  const Words rest(words.begin() + 1, words.end());
  if (words[0] == "--version") return run_version(rest);
  for (const Command& command : commands()) {
    if (words[0] == command.name) return command.run(rest);
  }
  for (const Command& command : kHidden) {
    if (words[0] == command.name) return command.run(rest);
  }
  return report_unknown_command(words[0]);
}

int run(const Words& words) {
  auto skipped = skip_global_options(words);
  if (!skipped) return usage_error("", skipped.error().message);
  return dispatch(Words(words.begin() + static_cast<std::ptrdiff_t>(*skipped), words.end()));
}

// Opens /dev/null in place of standard descriptors that are closed. Otherwise the kernel would give
// their numbers to the next sockets, and output would go to the head. The descriptors are opened in
// the wrong mode on purpose, so that reading and writing still fail.
void hold_standard_descriptors() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0)
      (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace
}  // namespace rt::cli

int main(int argc, char** argv) {
  rt::cli::hold_standard_descriptors();
  // A connection that breaks is an error to report.
  std::signal(SIGPIPE, SIG_IGN);
  // The program that started this one may ignore SIGCHLD, and this is inherited. The kernel would
  // then reap the children itself, and nobody here would learn how they ended.
  std::signal(SIGCHLD, SIG_DFL);
  rt::cli::set_program_name(std::filesystem::path(argv[0]).filename());
  int code = rt::cli::run(rt::cli::Words(argv + 1, argv + argc));
  return code == rt::cli::kExitOk ? rt::cli::finish(rt::cli::flush_output()) : code;
}
