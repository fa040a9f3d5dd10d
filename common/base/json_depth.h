// Measures the depth of JSON from strangers before it is parsed. Writing JSON recurses once per
// level, so that deep nesting could overflow the stack.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace rt {

// Deeper JSON from strangers is refused.
inline constexpr size_t kMaxJsonDepth = 100;

// How deep arrays and objects are nested. For text that is not JSON the result is at least as large
// as a parser would find.
inline size_t json_depth(std::string_view text) {
  size_t depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace rt
