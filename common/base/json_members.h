// Members of JSON objects that others have written, so that any may be absent or of another type.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace rt {

// Whether the object has a text of this name.
bool has_text(const nlohmann::ordered_json& object, const char* name);
// Returns the text of this name, or "" if there is none.
std::string text_of(const nlohmann::ordered_json& object, const char* name);
// Returns the whole part of the number of this name, or 0 if there is none.
int64_t number_of(const nlohmann::ordered_json& object, const char* name);
// Returns the number of this name, or `otherwise` if there is none.
double double_of(const nlohmann::ordered_json& object, const char* name, double otherwise = 0);

}  // namespace rt
