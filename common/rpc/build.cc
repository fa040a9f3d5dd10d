#include "common/rpc/build.h"

#include <fmt/format.h>

#ifndef RT_BUILD
#define RT_BUILD "0.1.0"
#endif

namespace rt::rpc {
namespace {

std::string& build() {
  static std::string text = RT_BUILD;
  return text;
}

struct Parts {
  std::string_view release, language, version;
};

std::string_view take_word(std::string_view* text) {
  size_t end = text->find(' ');
  std::string_view word = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return word;
}

Parts parse(std::string_view text) {
  Parts parts;
  parts.release = take_word(&text);
  parts.language = take_word(&text);
  parts.version = take_word(&text);
  return parts;
}

// The first two components of a version: "3.11" for "3.11.2".
std::string_view minor_of(std::string_view version) {
  size_t dot = version.find('.');
  return dot == std::string_view::npos ? version : version.substr(0, version.find('.', dot + 1));
}

std::string compare(std::string_view what, std::string_view mine, std::string_view theirs,
                    std::string_view harm) {
  if (mine == theirs || mine.empty() || theirs.empty()) return {};
  // The peer's text is not trusted, so only the beginning of it is shown.
  std::string text = fmt::format("{} {} runs here, {} {} there", what, mine.substr(0, 32), what,
                                 theirs.substr(0, 32));
  if (minor_of(mine) != minor_of(theirs)) text += fmt::format(": {}", harm);
  return text;
}

}  // namespace

const std::string& my_build() { return build(); }

void set_runtime(std::string_view runtime) { build() = fmt::format("{} {}", RT_BUILD, runtime); }

std::string build_difference(std::string_view mine, std::string_view theirs) {
  Parts a = parse(mine), b = parse(theirs);
  std::string text =
      compare("release", a.release, b.release, "install the same one on every machine");
  if (a.language != b.language) return text;
  std::string language = compare(a.language, a.version, b.version,
                                 "functions and classes pickled by one may not load in the other; "
                                 "use the same minor version on every machine");
  if (!text.empty() && !language.empty()) text += "; ";
  return text + language;
}

}  // namespace rt::rpc
