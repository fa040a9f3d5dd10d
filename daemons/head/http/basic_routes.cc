// Versions, authentication, health.
#include <fmt/core.h>

#include <ctime>

#include "common/base/clock.h"
#include "common/http/access.h"
#include "daemons/head/http/envelope.h"
#include "daemons/head/http/routes.h"
#include "observability/state/sources.h"

namespace rt::head {
namespace {

constexpr int64_t kHealthTimeoutUs = 5'000'000;

void timezone(http::Call& call) {
  std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  long minutes = local.tm_gmtoff / 60;
  answer_json(call, {{"offset", fmt::format("{}{:02}:{:02}", minutes < 0 ? '-' : '+',
                                            std::abs(minutes) / 60, std::abs(minutes) % 60)},
                     {"value", local.tm_zone ? local.tm_zone : "UTC"}});
}

// Succeeds when the head's loop answers and its files take what is written; `whole_node` asks for
// the head's node as well. Callers need no token, so the check costs the same in every cluster and
// its error names no file and no process.
Status ask_for_health(const ApiContext& context, bool whole_node) {
  RT_ASSIGN(auto sources, state::Sources::connect(context.cluster.head_address,
                                                  context.cluster.token, kHealthTimeoutUs));
  RT_ASSIGN(auto reply, sources->ask_head(&proto::HeadService::Stub::GetHealth, proto::Empty()));
  if (!reply.storage_failure().empty())
    return make_error(Code::kIo, "the head's storage is failing: `rayctl health-check` says why");
  if (whole_node && !reply.node_problem().empty())
    return make_error(Code::kUnavailable,
                      "gcs: success\nraylet: the head's node does not work as it should: "
                      "`rayctl health-check` says why");
  return {};
}

}  // namespace

void add_basic_routes(http::Server& server, const ApiContextPtr& context) {
  using http::Access;
  using http::Call;
  auto version = [context](Call& call) {
    answer_json(call, {{"version", "4"},
                       {"ray_version", RT_RAY_VERSION},
                       {"ray_commit", RT_VERSION},
                       {"session_name", context->session_name}});
  };
  server.on("GET", "/api/version", version);
  server.on("GET", "/api/ray/version", version);
  server.on("GET", "/timezone", timezone);
  server.on("GET", "/cluster_id", [context](Call& call) {
    succeed(call, "Fetched cluster id.", {{"cluster_id", context->cluster_id}});
  });
  server.on("GET", "/usage_stats_enabled", [](Call& call) {
    succeed(call, "Fetched usage stats enabled",
            {{"usage_stats_enabled", false}, {"usage_stats_prompt_enabled", false}});
  });

  server.on(
      "GET", "/api/authentication_mode",
      [context](Call& call) {
        answer_json(
            call, {{"authentication_mode", context->cluster.token.empty() ? "disabled" : "token"}});
      },
      Access::kOpen);
  auto set_cookie = [&server](Call& call, const std::string& secret, int64_t seconds) {
    call.response.set_header(
        "Set-Cookie",
        fmt::format("{}={}; Max-Age={}; Path=/; HttpOnly; SameSite=Strict{}", http::kTokenCookie,
                    secret, seconds, server.speaks_tls() ? "; Secure" : ""));
  };
  // Only callers that have shown the token get here.
  server.on("POST", "/api/authenticate", [&server, set_cookie](Call& call) {
    if (call.request.has_header("Authorization") ||
        call.request.has_header("X-Ray-Authorization")) {
      set_cookie(call, server.sessions().open(steady_now_us() / 1'000'000),
                 http::Sessions::kSeconds);
    }
    answer_json(call, {{"status", "authenticated"}, {"message", "Token is valid"}});
  });
  // Needs no token: it only ends the session whose secret the request carries.
  server.on(
      "POST", "/api/sign_out",
      [&server, set_cookie](Call& call) {
        server.sessions().close(http::token_cookie(call.request));
        set_cookie(call, "", 0);
        answer_json(call, {{"status", "signed out"}});
      },
      Access::kOpen);

  auto healthy = [context](bool whole_node) {
    return [context, whole_node](Call& call) {
      Status alive = ask_for_health(*context, whole_node);
      alive ? http::text(call.response, 200, "success")
            : http::text(call.response, 503, alive.error().message);
    };
  };
  server.on("GET", "/api/gcs_healthz", healthy(false), Access::kOpen);
  server.on("GET", "/api/healthz", healthy(true), Access::kOpen);
  server.on("GET", "/-/healthz", healthy(true), Access::kOpen);
}

}  // namespace rt::head
