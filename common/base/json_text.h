// JSON as text, read and written. Parsers and serialisers of nlohmann/json are large templates:
// here they are compiled once, which spares each file that includes this one about a second.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace rt {

// The value of the text. It is discarded (is_discarded()) if the text is no JSON, or is nested
// deeper than kMaxJsonDepth (common/base/json_depth.h).
nlohmann::json parse_json(std::string_view text);

// As parse_json(); objects keep the order of their members.
nlohmann::ordered_json parse_ordered_json(std::string_view text);

// The value without spaces. A byte that is no UTF-8 becomes U+FFFD.
std::string json_text(const nlohmann::json& value);
std::string json_text(const nlohmann::ordered_json& value);

// As json_text(), with escapes for all characters beyond ASCII.
std::string ascii_json_text(const nlohmann::json& value);
std::string ascii_json_text(const nlohmann::ordered_json& value);

}  // namespace rt
