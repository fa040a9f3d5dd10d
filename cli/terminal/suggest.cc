#include "cli/terminal/suggest.h"

#include "common/base/nearest_word.h"

namespace rt::cli {
namespace {

// Returns whether the first letters differ, as those of "drain" and "train".
bool begins_otherwise(const std::string& word, const std::string& other) {
  return word.empty() || other.empty() || word[0] != other[0];
}

}  // namespace

std::string suggested_word(const std::string& word, const Words& known) {
  std::string best = nearest_word(word, known);
  if (word.find_first_not_of('-') == std::string::npos) return best;
  // If the typed word is the beginning of a known one, that one is meant rather than a word with
  // another first letter.
  if (!best.empty() && !begins_otherwise(word, best)) return best;
  for (const std::string& one : known) {
    if (one.starts_with(word)) return one;
  }
  return best;
}

std::string did_you_mean(const std::string& word, const Words& known) {
  std::string one = suggested_word(word, known);
  return one.empty() ? "" : "; did you mean " + one + "?";
}

}  // namespace rt::cli
