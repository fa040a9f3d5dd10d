// The web page. Without a token a visitor sees only the form that asks for it. Speedscope is
// served as well if it is part of the build.
#include <algorithm>

#include "daemons/head/http/assets.h"
#include "daemons/head/http/routes.h"

namespace rt::head {
namespace {

// Scripts come only from this host and never inline.
constexpr char kPolicy[] =
    "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-src 'self'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
// A flame graph has a script of its own and shows names that programs chose. The sandbox keeps it
// from sending requests with the visitor's rights.
constexpr char kGraphPolicy[] =
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src "
    "'unsafe-inline'; frame-ancestors 'self'";
// Speedscope reads the profile that the page hands over (blob:) and contains a reader of Java
// recordings in WebAssembly.
constexpr char kSpeedscopePolicy[] =
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self' blob: data:; img-src 'self' data: blob:; object-src 'none'; base-uri "
    "'none'; "
    "form-action 'none'; frame-ancestors 'self'";
constexpr char kNoSpeedscope[] =
    "speedscope is not part of this build: npm or the network was not available when it was "
    "configured "
    "(cmake/speedscope.cmake)";

void serve(http::Call& call, const std::string& name, const char* policy,
           const char* otherwise = "404: Not Found") {
  auto all = assets();
  auto found = std::find_if(all.begin(), all.end(),
                            [&name](const Asset& asset) { return asset.name == name; });
  if (found == all.end()) return http::text(call.response, 404, otherwise);
  call.response.set_header("Content-Security-Policy", policy);
  if (policy != kPolicy) call.response.set_header("X-Frame-Options", "SAMEORIGIN");
  std::string type(found->type);
  if (type.starts_with("text/")) type += "; charset=utf-8";
  call.response.set_content(found->content.data(), found->content.size(), type);
}

}  // namespace

void add_page_routes(http::Server& server) {
  using http::Access;
  using http::Call;
  server.on("GET", "/", [](Call& call) { serve(call, "index.html", kPolicy); }, Access::kOpen);
  server.on(
      "GET", "/favicon.ico", [](Call& call) { serve(call, "icon.svg", kPolicy); }, Access::kOpen);
  server.on(
      "GET", "/static/([A-Za-z0-9_.-]+)",
      [](Call& call) {
        serve(call, call.parts[0], call.parts[0] == "graph.html" ? kGraphPolicy : kPolicy);
      },
      Access::kOpen);
  server.on(
      "GET", "/speedscope", [](Call& call) { call.response.set_redirect("speedscope/"); },
      Access::kOpen);
  server.on(
      "GET", "/speedscope/([A-Za-z0-9_.-]*)",
      [](Call& call) {
        serve(call, "speedscope/" + (call.parts[0].empty() ? "index.html" : call.parts[0]),
              kSpeedscopePolicy, kNoSpeedscope);
      },
      Access::kOpen);
}

}  // namespace rt::head
