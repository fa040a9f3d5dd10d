// Makes JSON objects whose members are all known at once. The initializer list of Json makes an
// array of each pair, searches the earlier members for each name, and deeply copies the members
// whenever the object grows. For lists of thousands of rows that would take most of the time.
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

// Usage: object_of({{"a", 1}, {"b", other}}). Keeps the order; names must be different.
template <size_t kCount>
Json object_of(Member (&&members)[kCount]) {
  Json::object_t object;
  object.reserve(kCount);
  for (Member& member : members) object.emplace_back(member.name, std::move(member.value));
  return object;
}

}  // namespace rt::api_json
