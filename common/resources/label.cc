#include "common/resources/label.h"

#include <algorithm>

namespace rt {
namespace {

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// Returns true for 1 to `longest` letters, digits and characters of `inner`, if the first and the
// last one are alphanumeric.
bool is_label_text(std::string_view text, size_t longest, std::string_view inner) {
  return !text.empty() && text.size() <= longest && is_alphanumeric(text.front()) &&
         is_alphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [&](char c) {
           return is_alphanumeric(c) || inner.find(c) != std::string_view::npos;
         });
}

}  // namespace

bool is_label_word(std::string_view text) { return is_label_text(text, kMostLabelWord, "._-"); }
bool is_label_prefix(std::string_view text) { return is_label_text(text, kMostLabelPrefix, ".-"); }

}  // namespace rt
