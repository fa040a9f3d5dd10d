#include "daemons/node_manager/process/py_spy.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "common/base/environment.h"
#include "common/base/program.h"

namespace rt::node {
namespace {

using proto::PySpyReply;
constexpr size_t kAtOnce = 8;
// How much longer than the requested duration a run may take. Reading the symbols of a large
// program takes time, but a client does not wait forever.
constexpr int64_t kBeyondDurationUs = 30'000'000;
constexpr size_t kMaxMessage = 2000;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Tells from the output of py-spy or sudo whether rights are missing. py-spy's wording depends on
// the platform; sudo complains when it would have to ask for a password.
bool tells_of_missing_rights(const std::string& text) {
  static constexpr const char* kWords[] = {
      "ermission denied", "ermission Denied",       "not permitted", "elevated permissions",
      "SYS_PTRACE",       "a password is required", "sudoers"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](const char* words) { return text.find(words) != std::string::npos; });
}

// Makes one line of an error message of py-spy, without the backtrace of py-spy itself.
std::string one_line(std::string text) {
  text = text.substr(0, text.find("Stack backtrace:"));
  if (text.size() > kMaxMessage) text.resize(kMaxMessage);
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

PySpy::PySpy(net::Loop& loop, Reaper& reaper, Options options)
    : loop_(loop), reaper_(reaper), options_(std::move(options)) {}

PySpy::~PySpy() {
  for (auto& [number, run] : runs_) {
    if (run.timer) loop_.cancel(run.timer);
    reaper_.watch(run.process.pid, [](int) {});
    signal_group(run.process, SIGKILL);
    for (const char* what : {"out", "err", "profile"}) ::unlink(file(number, what).c_str());
  }
}

void PySpy::run(const proto::PySpyRequest& request, Done done) {
  Run run;
  run.request = request;
  run.done = std::move(done);
  std::string directories = environment("PATH");
  if (!directories.empty()) directories += ':';
  directories += options_.python.substr(0, options_.python.rfind('/'));
  run.program = find_program("py-spy", directories);
  const uint64_t number = next_++;
  const bool full = runs_.size() >= kAtOnce;
  const std::string program = runs_.emplace(number, std::move(run)).first->second.program;
  if (program.empty())
    return finish(number, PySpyReply::NOT_INSTALLED, "py-spy is not installed on this node");
  if (full)
    return finish(number, PySpyReply::FAILED,
                  fmt::format("{} py-spy run on this node already: ask again", kAtOnce));
  start(number);
}

std::string PySpy::file(uint64_t number, const char* what) const {
  return fmt::format("{}/py-spy-{}.{}", options_.directory, number, what);
}

std::vector<std::string> PySpy::command(uint64_t number, const Run& run) const {
  const auto& request = run.request;
  std::vector<std::string> words;
  if (run.with_sudo) words = {"sudo", "-n"};
  words.insert(words.end(), {run.program, request.duration_s() ? "record" : "dump", "--pid",
                             std::to_string(request.pid())});
  if (request.duration_s()) {
    words.insert(words.end(), {"--output", file(number, "profile"), "--format", request.format(),
                               "--duration", std::to_string(request.duration_s())});
    if (request.idle()) words.push_back("--idle");
  }
  if (request.native()) words.push_back("--native");
  if (request.subprocesses()) words.push_back("--subprocesses");
  return words;
}

void PySpy::start(uint64_t number) {
  Run& run = runs_.at(number);
  SpawnOptions spawn;
  spawn.argv = command(number, run);
  spawn.stdout_path = file(number, "out");
  spawn.stderr_path = file(number, "err");
  spawn.new_session = true;
  auto process = spawn_process(spawn);
  if (!process) return finish(number, PySpyReply::FAILED, process.error().message);
  run.process = *process;
  reaper_.watch(process->pid, [this, number](int status) { exited(number, status); });
  run.timer = loop_.run_after(run.request.duration_s() * int64_t{1'000'000} + kBeyondDurationUs,
                              [this, number] {
                                Run& late = runs_.at(number);
                                late.timer = 0;
                                late.out_of_time = true;
                                signal_group(late.process, SIGKILL);
                              });
}

void PySpy::exited(uint64_t number, int status) {
  Run& run = runs_.at(number);
  if (run.timer) loop_.cancel(run.timer);
  run.timer = 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return finish(number, PySpyReply::DONE,
                  contents(file(number, run.request.duration_s() ? "profile" : "out")));
  if (run.out_of_time) return finish(number, PySpyReply::FAILED, "py-spy did not end in time");
  std::string said = one_line(contents(file(number, "err")) + contents(file(number, "out")));
  if (said.empty())
    said = WIFSIGNALED(status) ? fmt::format("it was killed by signal {}", WTERMSIG(status))
                               : fmt::format("it ended with exit code {}", WEXITSTATUS(status));
  if (!tells_of_missing_rights(said)) return finish(number, PySpyReply::FAILED, "py-spy: " + said);
  if (run.with_sudo || options_.is_root || find_program("sudo", environment("PATH")).empty())
    return finish(number, PySpyReply::NOT_PERMITTED, "py-spy: " + said);
  for (const char* what : {"out", "err", "profile"}) ::unlink(file(number, what).c_str());
  run.with_sudo = true;
  start(number);
}

void PySpy::finish(uint64_t number, PySpyReply::Outcome outcome, const std::string& text) {
  Run run = std::move(runs_.extract(number).mapped());
  for (const char* what : {"out", "err", "profile"}) ::unlink(file(number, what).c_str());
  PySpyReply reply;
  reply.set_outcome(outcome);
  outcome == PySpyReply::DONE ? reply.set_output(text) : reply.set_message(text);
  run.done(reply);
}

}  // namespace rt::node
