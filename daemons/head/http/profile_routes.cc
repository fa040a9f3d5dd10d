// Stacks and flame graphs over HTTP: /worker/traceback, /worker/cpu_profile, /task/traceback,
// /task/cpu_profile, /api/profiling_enabled. The node of the process runs py-spy if that is
// installed and permitted. Otherwise the answer says what py-spy needs, and the process samples
// itself (observability/profile), which needs no rights.
#include <fmt/core.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "daemons/head/http/envelope.h"
#include "daemons/head/http/routes.h"
#include "observability/state/profile_query.h"
#include "observability/state/py_spy_query.h"

namespace rt::head {
namespace {

using http::Call;
using Request = proto::ProfileRequest;

constexpr int64_t kAnswerTimeoutUs = 10'000'000, kPySpyTimeoutUs = 35'000'000;
constexpr int kHz = 100;
constexpr const char* kNoteHeader = "X-Ray-Profiling-Note";
constexpr const char* kWarningHeader = "X-Ray-Profiling-Warning";
// Names the sampler that answered: py-spy or builtin.
constexpr const char* kSamplerHeader = "X-Ray-Profiling-Sampler";
constexpr const char* kPySpyAdvice =
    "This command requires `py-spy` to be installed with root permissions. You\n"
    "can install `py-spy` and give it root permissions as follows:\n"
    "  $ pip install py-spy\n"
    "  $ sudo chown root:root `which py-spy`\n"
    "  $ sudo chmod u+s `which py-spy`\n"
    "\n"
    "Alternatively, you can start Ray with passwordless sudo / root permissions.\n";
constexpr const char* kTaskStyle = "<style>svg{width:100%;height:auto;background:#fff}</style>\n";

int64_t number_in_environment(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  int64_t value = 0;
  if (!text) return otherwise;
  auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  return error == std::errc() && *end == '\0' && value > 0 ? value : otherwise;
}

std::string text_in_environment(const char* variable, const char* otherwise) {
  const char* text = std::getenv(variable);
  return text ? text : otherwise;
}

// Values of absent parameters, from the head's environment under Ray's names.
struct Defaults {
  bool native = text_in_environment("RAY_DASHBOARD_PROFILING_NATIVE_DEFAULT", "0") == "1";
  bool subprocesses =
      text_in_environment("RAY_DASHBOARD_PROFILING_SUBPROCESSES_DEFAULT", "0") == "1";
  bool idle = text_in_environment("RAY_DASHBOARD_PROFILING_IDLE_DEFAULT", "0") == "1";
  int64_t duration_s = number_in_environment("RAY_DASHBOARD_PROFILING_CPU_DURATION_DEFAULT", 5);
  int64_t max_duration_s = number_in_environment("RAY_DASHBOARD_PROFILING_MAX_DURATION_S", 60);
  std::string format =
      text_in_environment("RAY_DASHBOARD_PROFILING_CPU_FORMAT_DEFAULT", "flamegraph");
};

bool flag(const Call& call, const char* name, bool otherwise) {
  return call.request.has_param(name) ? call.query(name) == "1" : otherwise;
}

Result<int64_t> whole(const Call& call, const char* name, int64_t otherwise) {
  if (!call.request.has_param(name)) return otherwise;
  std::string text = call.query(name);
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return make_error(Code::kInvalid,
                      fmt::format("{} is '{}', but must be a whole number", name, text));
  return value;
}

void refuse_profile(Call& call, const Error& error) {
  http::text(call.response, error.code == Code::kInvalid ? 400 : 500, error.message);
}

// Reads which process is meant, and the parameter `native`.
Result<state::ProfileQuery> worker_of(const Call& call, const Defaults& defaults) {
  state::ProfileQuery query;
  RT_ASSIGN(int64_t pid, whole(call, "pid", -1));
  if (pid <= 0 || pid > std::numeric_limits<int32_t>::max())
    return make_error(Code::kInvalid,
                      "pid is missing: it takes the process id of a worker or driver");
  query.target = std::to_string(pid);
  query.node = call.query("node_id", call.query("ip"));
  if (query.node.empty())
    return make_error(Code::kInvalid, "ip or node_id is missing: which node's process is it?");
  query.native = flag(call, "native", defaults.native);
  query.timeout_us = kAnswerTimeoutUs;
  return query;
}

Result<state::ProfileQuery> task_of(const ApiContext& context, Call& call,
                                    const Defaults& defaults) {
  for (const char* name : {"task_id", "attempt_number", "node_id"}) {
    if (call.query(name).empty())
      return make_error(
          Code::kInvalid,
          std::string(name) + " is missing: task_id, attempt_number and node_id are needed");
  }
  RT_ASSIGN(int64_t attempt, whole(call, "attempt_number", 0));
  RT_ASSIGN(state::TaskPlace place, state::find_running_task(context.cluster, call.query("task_id"),
                                                             attempt, kAnswerTimeoutUs));
  if (place.running_there > 1) {
    call.response.set_header(
        kWarningHeader,
        fmt::format("process {} runs {} tasks at once: all of them are in this answer", place.pid,
                    place.running_there));
  }
  state::ProfileQuery query;
  query.target = std::to_string(place.pid);
  query.node = place.node_id;
  query.native = flag(call, "native", defaults.native);
  query.timeout_us = kAnswerTimeoutUs;
  return query;
}

enum class Sampler { kAuto, kPySpy, kBuiltin };

Result<Sampler> sampler_of(const Call& call) {
  const std::string name = call.query("sampler", "auto");
  if (name == "auto") return Sampler::kAuto;
  if (name == "py-spy") return Sampler::kPySpy;
  if (name == "builtin") return Sampler::kBuiltin;
  return make_error(Code::kInvalid, fmt::format("unknown sampler '{}': use py-spy, builtin or "
                                                "auto (py-spy where it is allowed)",
                                                name));
}

bool lacks_py_spy(const proto::PySpyReply& reply) {
  return reply.outcome() == proto::PySpyReply::NOT_INSTALLED ||
         reply.outcome() == proto::PySpyReply::NOT_PERMITTED;
}

// A header's value is one line of visible ASCII characters.
std::string header_text(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = ' ';
  }
  return text;
}

struct FromPySpy {
  // The output of py-spy, or nothing when the built-in sampler has to be asked.
  std::optional<std::string> text;
  // The answer must begin with what py-spy needs.
  bool advise = false;
};

// Runs py-spy unless the client chose the built-in sampler. Fails when py-spy cannot answer and
// the client accepts no other sampler, or when the process does not exist.
Result<FromPySpy> ask_py_spy(const ApiContext& context, Call& call, const Defaults& defaults,
                             const state::ProfileQuery& query, int64_t duration_s,
                             const std::string& format) {
  RT_ASSIGN(Sampler sampler, sampler_of(call));
  const bool subprocesses = flag(call, "subprocesses", defaults.subprocesses);
  auto builtin = [&](const std::string& why, bool advise) {
    call.response.set_header(kSamplerHeader, "builtin");
    call.response.set_header(
        kNoteHeader, header_text("built-in sampler: " + why +
                                 (subprocesses ? "; it does not look at subprocesses" : "")));
    return FromPySpy{std::nullopt, advise};
  };
  if (sampler == Sampler::kBuiltin) return builtin("asked for", false);
  proto::PySpyRequest request;
  request.set_pid(std::atoi(query.target.c_str()));
  request.set_native(query.native);
  request.set_subprocesses(subprocesses);
  request.set_idle(flag(call, "idle", defaults.idle));
  request.set_duration_s(static_cast<int32_t>(duration_s));
  request.set_format(format);
  RT_ASSIGN(auto reply, state::run_py_spy(context.cluster, query.node, request,
                                          duration_s * 1'000'000 + kPySpyTimeoutUs));
  if (reply.outcome() == proto::PySpyReply::DONE) {
    call.response.set_header(kSamplerHeader, "py-spy");
    return FromPySpy{reply.output(), false};
  }
  if (sampler == Sampler::kAuto) return builtin(reply.message(), lacks_py_spy(reply));
  return make_error(Code::kUnavailable, lacks_py_spy(reply)
                                            ? reply.message() + "\n\n" + kPySpyAdvice
                                            : reply.message());
}

void answer_traceback(const ApiContext& context, Call& call, const Defaults& defaults,
                      const Result<state::ProfileQuery>& query) {
  if (!query) return refuse_profile(call, query.error());
  auto first = ask_py_spy(context, call, defaults, *query, 0, "");
  if (!first) return refuse_profile(call, first.error());
  if (first->text) return http::text(call.response, 200, *first->text);
  auto answer = state::profile_processes(context.cluster, *query);
  if (!answer) return refuse_profile(call, answer.error());
  std::string stacks = profile::stacks_text(answer->all);
  http::text(call.response, 200,
             first->advise
                 ? fmt::format("{}\nWithout it, this is what the process says of itself:\n\n{}",
                               kPySpyAdvice, stacks)
                 : stacks);
}

// A flame graph has a script of its own and shows names that programs chose, so it is sandboxed
// away from this page's origin.
void answer_graph(Call& call, const std::string& svg, bool as_html) {
  call.response.status = 200;
  call.response.set_header("Content-Security-Policy",
                           "sandbox allow-scripts allow-modals; default-src 'none'; script-src "
                           "'unsafe-inline'; style-src 'unsafe-inline'; frame-ancestors 'none'");
  const size_t begin = svg.find("<svg");
  call.response.set_content(
      as_html && begin != std::string::npos ? kTaskStyle + svg.substr(begin) : svg,
      as_html ? "text/html" : "image/svg+xml");
}

Result<std::string> sample_builtin(const ApiContext& context, const Call& call,
                                   const Defaults& defaults, state::ProfileQuery query,
                                   int64_t duration_s, const std::string& format, bool advise) {
  Request request;
  request.set_duration_ms(duration_s * 1000);
  request.set_hz(kHz);
  request.set_mode(flag(call, "idle", defaults.idle) ? Request::WALL : Request::CPU);
  query.profile = request;
  RT_ASSIGN(auto answer, state::profile_processes(context.cluster, query));
  profile::leave_out_idle_service(&answer.all);
  return profile::render(
      answer.all, format,
      fmt::format(
          "process {}: {} s{}", query.target, duration_s,
          advise ? " (built-in sampler; py-spy is not installed with root permissions)" : ""));
}

void answer_profile(const ApiContext& context, Call& call, const Defaults& defaults,
                    const Result<state::ProfileQuery>& query, bool as_html) {
  if (!query) return refuse_profile(call, query.error());
  auto duration = whole(call, "duration", defaults.duration_s);
  if (!duration) return refuse_profile(call, duration.error());
  if (*duration < 1 || *duration > defaults.max_duration_s) {
    return http::text(
        call.response, 400,
        fmt::format(
            "duration is {}: it takes 1 to {} seconds (RAY_DASHBOARD_PROFILING_MAX_DURATION_S)",
            *duration, defaults.max_duration_s));
  }
  const std::string format = call.query("format", defaults.format);
  if (format != "flamegraph" && format != "raw" && format != "speedscope") {
    return http::text(
        call.response, 500,
        fmt::format("unknown format '{}': use flamegraph, raw or speedscope", format));
  }
  auto first = ask_py_spy(context, call, defaults, *query, *duration, format);
  if (!first) return refuse_profile(call, first.error());
  auto text = first->text ? Result<std::string>(std::move(*first->text))
                          : sample_builtin(context, call, defaults, *query, *duration, format,
                                           first->advise);
  if (!text) return refuse_profile(call, text.error());
  if (format == "flamegraph") return answer_graph(call, *text, as_html);
  http::text(call.response, 200, *text);
}

void send_defaults(const ApiContext& context, Call& call, const Defaults& defaults) {
  Json values = {{"native", defaults.native},      {"subprocesses", defaults.subprocesses},
                 {"idle", defaults.idle},          {"leaks", false},
                 {"tracePythonAllocators", false}, {"cpuDuration", defaults.duration_s},
                 {"memoryDuration", 10},           {"maxDuration", defaults.max_duration_s},
                 {"cpuFormat", defaults.format},   {"memoryFormat", "flamegraph"},
                 {"pyspyNativeSupported", true}};
  succeed(call, "Profiling of this cluster",
          {{"profilingEnabled", profiling_enabled(context)},
           {"profilingDefaults", std::move(values)},
           {"pyspyAdvice", kPySpyAdvice}},
          Keys::kAsTheyAre);
}

}  // namespace

// On by default in a cluster with a token, because callers have shown it; without a token it must
// be switched on, as in Ray.
bool profiling_enabled(const ApiContext& context) {
  return text_in_environment("RAY_DASHBOARD_ENABLE_PROFILING",
                             context.cluster.token.empty() ? "0" : "1") == "1";
}

void add_profile_routes(http::Server& server, const ApiContextPtr& context) {
  const auto defaults = std::make_shared<const Defaults>();
  auto guarded = [context](auto answer) {
    return [context, answer](Call& call) {
      if (profiling_enabled(*context)) return answer(call);
      http::text(call.response, 403, kProfilingIsOff);
    };
  };
  server.on("GET", "/api/profiling_enabled",
            [context, defaults](Call& call) { send_defaults(*context, call, *defaults); });
  server.on("GET", "/worker/traceback", guarded([context, defaults](Call& call) {
              answer_traceback(*context, call, *defaults, worker_of(call, *defaults));
            }));
  server.on("GET", "/worker/cpu_profile", guarded([context, defaults](Call& call) {
              answer_profile(*context, call, *defaults, worker_of(call, *defaults), false);
            }));
  server.on("GET", "/task/traceback", guarded([context, defaults](Call& call) {
              answer_traceback(*context, call, *defaults, task_of(*context, call, *defaults));
            }));
  server.on("GET", "/task/cpu_profile", guarded([context, defaults](Call& call) {
              answer_profile(*context, call, *defaults, task_of(*context, call, *defaults), true);
            }));
  auto absent = guarded([](Call& call) {
    http::text(call.response, 500,
               "memory, GPU and JAX profiles are not in this release; memray or the GPU's own "
               "profiler work inside of a task");
  });
  for (const char* path : {"/memory_profile", "/worker/gpu_profile", "/worker/jax_profile"})
    server.on("GET", path, absent);
}

}  // namespace rt::head
