#include "daemons/head/http/redaction.h"

#include "common/base/environment.h"
#include "common/base/json_depth.h"
#include "common/base/json_text.h"
#include "common/http/access.h"

namespace rt::head {
namespace {

void redact(state::Json& value) {
  if (value.is_array()) {
    for (state::Json& item : value) redact(item);
  }
  if (!value.is_object()) return;
  for (auto& [name, inner] : value.items()) {
    if (name == "env_vars" && inner.is_object()) {
      for (state::Json& variable : inner) variable = "<redacted>";
    } else if (name == "serialized_runtime_env" && inner.is_string()) {
      const std::string text = inner.get<std::string>();
      // The text comes from a driver, and nobody has checked it.
      state::Json env =
          json_depth(text) > kMaxJsonDepth ? state::Json("<redacted>") : parse_ordered_json(text);
      redact(env);
      if (!env.is_discarded()) inner = json_text(env);
    } else {
      redact(inner);
    }
  }
}

}  // namespace

void redact_for_browsers(const http::Request& request, state::Json* rows) {
  static const bool redacts = environment("RAY_DASHBOARD_REDACT_RUNTIME_ENV") != "0";
  if (redacts && http::is_browser(request)) redact(*rows);
}

}  // namespace rt::head
