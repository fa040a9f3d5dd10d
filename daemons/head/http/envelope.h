// {"result", "msg", "data"}: what most answers are wrapped in.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "common/http/server.h"

namespace rt::head {

using Json = nlohmann::json;

enum class Keys { kAsTheyAre, kCamelCase };

// 200 with `data`; bytes that are not UTF-8 are replaced.
void succeed(http::Call& call, const std::string& message, Json data, Keys keys = Keys::kCamelCase);
// The status that stands for the error, and `result` false.
void fail(http::Call& call, const Error& error);
void fail(http::Call& call, int status, const std::string& message);
// A JSON body without an envelope.
void answer_json(http::Call& call, const Json& json);

int http_status(Code code);
// Keys of all objects: snake_case and kebab-case, and "node:name", to camelCase.
Json camel_case(const Json& json);

}  // namespace rt::head
