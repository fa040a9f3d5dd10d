#include "common/base/nearest_word.h"

#include <algorithm>

namespace rt {
namespace {

// Longer words are not mistyped names; the limit bounds the work.
constexpr size_t kLongestWord = 64;

// The optimal string alignment distance: insertions, deletions, substitutions, and swaps of
// neighbours.
size_t slips(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest_word(const std::string& word, const std::vector<std::string>& known) {
  if (word.size() > kLongestWord) return "";
  std::string best;
  // Two edits turn a short word into nearly any other short word.
  size_t fewest = word.size() < 5 ? 2 : 3;
  for (const std::string& one : known) {
    size_t count = slips(word, one);
    if (count >= fewest) continue;
    fewest = count;
    best = one;
  }
  return best;
}

}  // namespace rt
