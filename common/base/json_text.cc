#include "common/base/json_text.h"

#include <nlohmann/json.hpp>

#include "common/base/json_depth.h"

namespace rt {
namespace {

template <class Json>
Json parse(std::string_view text) {
  if (json_depth(text) > kMaxJsonDepth) return Json(Json::value_t::discarded);
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

template <class Json>
std::string write(const Json& value, bool is_ascii) {
  return value.dump(-1, ' ', is_ascii, Json::error_handler_t::replace);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) { return parse<nlohmann::json>(text); }
nlohmann::ordered_json parse_ordered_json(std::string_view text) {
  return parse<nlohmann::ordered_json>(text);
}
std::string json_text(const nlohmann::json& value) { return write(value, false); }
std::string json_text(const nlohmann::ordered_json& value) { return write(value, false); }
std::string ascii_json_text(const nlohmann::json& value) { return write(value, true); }
std::string ascii_json_text(const nlohmann::ordered_json& value) { return write(value, true); }

}  // namespace rt
