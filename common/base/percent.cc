#include "common/base/percent.h"

#include <algorithm>
#include <cstdint>

#include "common/base/ids.h"

namespace rt {
namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string percent_decoded(std::string_view text, Plus plus) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string byte = text[i] == '%' ? from_hex(text.substr(i + 1, 2)) : std::string();
    if (!byte.empty()) {
      out += byte;
      i += 2;
    } else {
      out.push_back(text[i] == '+' && plus == Plus::kIsBlank ? ' ' : text[i]);
    }
  }
  return out;
}

std::string percent_encoded(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    if (is_unreserved(c)) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<uint8_t>(c);
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> query_pairs(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equal = pair.find('=');
    if (pair.empty()) continue;
    pairs.emplace_back(percent_decoded(pair.substr(0, equal), Plus::kIsBlank),
                       equal == std::string_view::npos
                           ? ""
                           : percent_decoded(pair.substr(equal + 1), Plus::kIsBlank));
  }
  return pairs;
}

}  // namespace rt
