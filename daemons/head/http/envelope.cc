#include "daemons/head/http/envelope.h"

#include <cctype>

#include "common/base/json_text.h"

namespace rt::head {
namespace {

std::string camel_case(const std::string& name) {
  std::string out;
  bool upper = false;
  for (char c : name) {
    if (c == '_' || c == '-' || c == ':') {
      upper = !out.empty();
      if (c == ':') out += c;
    } else {
      out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      upper = false;
    }
  }
  return out;
}

void enveloped(http::Call& call, int status, bool result, const std::string& message, Json data) {
  Json envelope{{"result", result}, {"msg", message}};
  envelope["data"] = std::move(data);
  http::json(call.response, status, json_text(envelope));
}

}  // namespace

Json camel_case(const Json& json) {
  if (json.is_array()) {
    Json out = Json::array();
    for (const Json& item : json) out.push_back(camel_case(item));
    return out;
  }
  if (!json.is_object()) return json;
  Json out = Json::object();
  for (const auto& [name, value] : json.items()) out[camel_case(name)] = camel_case(value);
  return out;
}

int http_status(Code code) {
  switch (code) {
    case Code::kInvalid: return 400;
    case Code::kNotFound: return 404;
    case Code::kResourceExhausted: return 429;
    // This includes kUnavailable: clients of the state API know 500 for a source without an answer.
    // Jobs and logs answer 503 there, which their followers take for a question to repeat.
    default: return 500;
  }
}

void succeed(http::Call& call, const std::string& message, Json data, Keys keys) {
  enveloped(call, 200, true, message,
            keys == Keys::kCamelCase ? camel_case(data) : std::move(data));
}

void fail(http::Call& call, int status, const std::string& message) {
  enveloped(call, status, false, message, Json::object());
}
void fail(http::Call& call, const Error& error) {
  fail(call, http_status(error.code), error.message);
}

void answer_json(http::Call& call, const Json& json) {
  http::json(call.response, 200, json_text(json));
}

}  // namespace rt::head
