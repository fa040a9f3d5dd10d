// Percent-encoding of URLs (RFC 3986).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rt {

enum class Plus { kIsPlus, kIsBlank };  // The latter is the rule for queries of HTML forms.

// "%41" becomes "A". A percent sign that no two hexadecimal digits follow stays as it is.
std::string percent_decoded(std::string_view text, Plus plus = Plus::kIsPlus);
// Everything but letters, digits and -._~ is encoded.
std::string percent_encoded(std::string_view text);
// The names and values of a query such as "a=1&b=x%20y", decoded, in their order. A name without a
// value has an empty one.
std::vector<std::pair<std::string, std::string>> query_pairs(std::string_view query);

}  // namespace rt
