// The web page: what a stranger may see of it is a form that asks for the token.
#include <algorithm>

#include "daemons/head/http/assets.h"
#include "daemons/head/http/routes.h"

namespace rt::head {
namespace {

// Nothing of another host, nothing inline but what a flame graph brings with it in a frame of its own.
constexpr char kPolicy[] = "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-src blob:; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

void serve(http::Call& call, std::string_view name) {
  auto all = assets();
  auto found = std::find_if(all.begin(), all.end(), [name](const Asset& asset) { return asset.name == name; });
  if (found == all.end()) return http::text(call.response, 404, "404: Not Found");
  call.response.set_header("Content-Security-Policy", kPolicy);
  std::string type(found->type);
  if (type.starts_with("text/")) type += "; charset=utf-8";
  call.response.set_content(found->content.data(), found->content.size(), type);
}

}  // namespace

void add_page_routes(http::Server& server) {
  using http::Access;
  server.on("GET", "/", [](http::Call& call) { serve(call, "index.html"); }, Access::kOpen);
  server.on("GET", "/favicon.ico", [](http::Call& call) { serve(call, "icon.svg"); }, Access::kOpen);
  server.on("GET", "/static/([A-Za-z0-9_.-]+)", [](http::Call& call) { serve(call, call.parts[0]); }, Access::kOpen);
}

}  // namespace rt::head
