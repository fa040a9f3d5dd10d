// Objects whose members are all known at once. Json's own initializer list makes an array of each
// pair, looks for each name among those before it, and copies what it has, with all that hangs on
// it, whenever it grows: lists of thousands of rows would spend their time with that.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

namespace rt::api_json {

using Json = nlohmann::ordered_json;

struct Member {
  const char* name;
  Json value;
};

// {{"a", 1}, {"b", other}}: in this order; no name twice.
template <size_t kCount>
Json object_of(Member (&&members)[kCount]) {
  Json::object_t object;
  object.reserve(kCount);
  for (Member& member : members) object.emplace_back(member.name, std::move(member.value));
  return object;
}

}  // namespace rt::api_json
