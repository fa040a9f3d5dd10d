#include "cli/suggest.h"

#include "common/base/nearest_word.h"

namespace rt::cli {

std::string suggested_word(const std::string& word, const Words& known) {
  std::string best = nearest_word(word, known);
  if (!best.empty() || word.find_first_not_of('-') == std::string::npos) return best;
  for (const std::string& one : known) {
    if (one.starts_with(word)) return one;
  }
  return "";
}

std::string did_you_mean(const std::string& word, const Words& known) {
  std::string one = suggested_word(word, known);
  return one.empty() ? "" : "; did you mean " + one + "?";
}

}  // namespace rt::cli
