#include "common/base/json_members.h"

#include <nlohmann/json.hpp>

namespace rt {

using Json = nlohmann::ordered_json;

bool has_text(const Json& object, const char* name) {
  auto found = object.find(name);
  return found != object.end() && found->is_string();
}

std::string text_of(const Json& object, const char* name) {
  auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t number_of(const Json& object, const char* name) {
  auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<int64_t>() : 0;
}

double double_of(const Json& object, const char* name, double otherwise) {
  auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

}  // namespace rt
