// JSON of strangers before it is parsed: what writes JSON recurses, once for each level.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace rt {

inline constexpr size_t kMaxJsonDepth = 100;

// How many arrays and objects lie within each other at the deepest place; of what is no JSON at
// least as many as a parser would find.
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
