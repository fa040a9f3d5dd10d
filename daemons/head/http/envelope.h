// The envelope of most answers: {"result", "msg", "data"}.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "common/http/server.h"

namespace rt::head {

using Json = nlohmann::json;

enum class Keys { kAsTheyAre, kCamelCase };

// Answers 200 with `data`. Bytes that are not UTF-8 are replaced.
void succeed(http::Call& call, const std::string& message, Json data, Keys keys = Keys::kCamelCase);
// Answers with `result` false and the HTTP status that the error maps to.
void fail(http::Call& call, const Error& error);
void fail(http::Call& call, int status, const std::string& message);
// Answers 200 with a JSON body without envelope.
void answer_json(http::Call& call, const Json& json);

int http_status(Code code);
// Changes the keys of all objects from snake_case and kebab-case to camelCase; "node:name" becomes
// "node:Name".
Json camel_case(const Json& json);

}  // namespace rt::head
