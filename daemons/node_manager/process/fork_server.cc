#include "daemons/node_manager/process/fork_server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "common/base/json_text.h"
#include "common/base/log.h"

namespace rt::node {
namespace {

constexpr size_t kMaxLineBytes = 1 << 20;
// The time for the socket of a server that has ended to close. It closes at once, unless a process
// that a preloaded module has started holds it, too.
constexpr int64_t kClosePauseUs = 500'000;

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) return fmt::format("it was killed by signal {}", WTERMSIG(status));
  return fmt::format("it exited with code {}", WEXITSTATUS(status));
}

// Returns `text` as a Python string literal for the -c program: paths may contain quotes and
// backslashes.
std::string python_literal(const std::string& text) {
  return ascii_json_text(nlohmann::json(text));
}

}  // namespace

Result<std::unique_ptr<ForkServer>> ForkServer::start(net::Loop& loop, Reaper& reaper,
                                                      const Options& options, Events events) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    return errno_error("cannot make a socket pair for the fork server", errno);
  SpawnOptions spawn;
  spawn.argv = {
      options.python, "-c",
      // A package directory that is in sys.path already (site-packages) keeps its place
      // behind the standard library.
      fmt::format(
          "import gc, sys; gc.disable(); p = {}; p in sys.path or sys.path.insert(0, p); from "
          "ray._private.fork_server import main; main()",
          python_literal(options.python_path)),
      "3"};
  if (!options.end_children) spawn.argv.push_back("keep-children");
  if (!options.preload.empty()) {
    nlohmann::json names(options.preload);
    spawn.argv.push_back("preload=" + ascii_json_text(names));
  }
  if (!options.interpreter.empty()) spawn.argv.push_back("interpreter");
  spawn.env = options.env;
  spawn.stdout_path = spawn.stderr_path = options.log_path;
  spawn.inherit_fd = fds[1];
  auto process = spawn_process(spawn);
  ::close(fds[1]);
  if (!process) {
    ::close(fds[0]);
    return std::move(process).error();
  }
  ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
  std::unique_ptr<ForkServer> server(new ForkServer(loop, reaper, options, std::move(events)));
  server->process_ = *process;
  server->stream_ = loop.adopt(fds[0]);
  server->stream_->start(server.get());
  if (!options.interpreter.empty()) {
    server->stream_->write(as_bytes(options.interpreter + "\n"));
    server->stream_->flush();
  }
  reaper.watch(process->pid, [raw = server.get()](int status) { raw->exited(status); });
  return server;
}

ForkServer::ForkServer(net::Loop& loop, Reaper& reaper, const Options& options, Events events)
    : loop_(loop),
      reaper_(reaper),
      options_(options),
      events_(std::move(events)),
      unclosed_(loop, [this] { died(how_it_ended_); }) {}

ForkServer::~ForkServer() {
  // One that is not ready has no children, and would notice the closed socket only when it is.
  if (!ready_) kill();
  if (!exited_) reaper_.watch(process_.pid, [](int) {});  // replaces the handler that uses `this`
}

void ForkServer::fork(const ForkRequest& request) {
  nlohmann::json json = {{"op", "fork"},
                         {"worker_id", request.worker_id_hex},
                         {"stdout", request.stdout_path},
                         {"stderr", request.stderr_path},
                         {"args", request.args},
                         {"env", request.env}};
  std::string line = ascii_json_text(json) + "\n";
  if (!stream_) return;
  stream_->write(as_bytes(line));
  stream_->flush();
}

void ForkServer::kill() {
  if (exited_) return;
  // Before it is ready it may have started programs, such as pip, which are of its group.
  if (!ready_) signal_group(process_, SIGKILL);
  signal_process(process_, SIGKILL);
}

MutableBytes ForkServer::read_buffer() {
  return {reinterpret_cast<uint8_t*>(buffer_), sizeof buffer_};
}

void ForkServer::on_read(size_t n) {
  partial_.append(buffer_, n);
  size_t start = 0;
  for (size_t end; (end = partial_.find('\n', start)) != std::string::npos; start = end + 1)
    on_line(partial_.substr(start, end - start));
  partial_.erase(0, start);
  if (partial_.size() > kMaxLineBytes) died("it sent a line without end");
}

void ForkServer::on_line(const std::string& line) {
  nlohmann::json json = parse_json(line);
  if (!json.is_object()) {
    RT_WARN("fork server {} sent a line that is not JSON: {}", process_.pid, line.substr(0, 200));
    return;
  }
  auto text = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>()
                                                       : std::string();
  };
  auto number = [&](const char* key) {
    return json.contains(key) && json[key].is_number_integer() ? json[key].get<int64_t>()
                                                               : int64_t{0};
  };
  if (json.contains("forked")) {
    events_.on_forked(text("forked"), ProcessId{static_cast<int>(number("pid")),
                                                static_cast<uint64_t>(number("start"))});
  } else if (json.contains("exited")) {
    events_.on_exited(static_cast<int>(number("exited")), static_cast<int>(number("status")));
  } else if (json.contains("failed")) {
    events_.on_fork_failed(text("failed"), text("error"));
  } else if (json.contains("importing")) {
    doing_ = fmt::format("imported the module '{}' (runtime_env preload)", text("importing"));
  } else if (json.contains("making")) {
    doing_ = "made its interpreter (runtime_env pip, py_executable)";
  } else if (json.contains("ready")) {
    ready_ = true;
    doing_.clear();
    events_.on_ready();
  }
}

void ForkServer::on_closed(const Error&) {
  closed_ = true;
  if (exited_) return died(how_it_ended_);
  // died() is called once the process is reaped: its exit status says more than the closed socket.
  kill();
}

// The end may be noticed before everything is read that the server has sent, such as what it did
// and which of its workers have ended. All of that has been read when the socket is closed.
void ForkServer::exited(int status) {
  exited_ = true;
  how_it_ended_ = describe_status(status);
  if (closed_) return died(how_it_ended_);
  unclosed_.ring_by(loop_.now_us() + kClosePauseUs);
}

void ForkServer::died(const std::string& why) {
  if (dead_) return;
  dead_ = true;
  kill();
  std::string tail = file_tail(options_.log_path);
  std::string where = doing_.empty() ? "" : " while it " + doing_;
  std::string message =
      fmt::format("the fork server of {} ended{}: {}", options_.python, where, why);
  if (!tail.empty()) message += "\nThe last lines of its log:\n" + tail;
  // The receiver may destroy this object. It is therefore called from the loop, when no method of
  // this object or of its stream is on the stack, and uses nothing of this object.
  loop_.post([on_died = events_.on_died, message] { on_died(message); });
}

}  // namespace rt::node
