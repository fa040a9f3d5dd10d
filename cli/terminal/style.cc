#include "cli/terminal/style.h"

#include <fmt/core.h>
#include <unistd.h>

#include "common/base/environment.h"

namespace rt::cli {
namespace {

std::string g_choice = "auto";

bool is_set(const char* name) {
  std::string value = environment(name);
  return !value.empty() && value != "0";
}

const char* escape_of(Ink ink) {
  switch (ink) {
    case Ink::kBad: return "1;31";
    case Ink::kGood: return "32";
    case Ink::kWarning: return "33";
    case Ink::kTitle: return "1";
    case Ink::kFaint: return "2";
  }
  return "0";
}

}  // namespace

void set_colours(const std::string& choice) { g_choice = choice; }

bool coloured(std::FILE* to) {
  if (g_choice != "auto") return g_choice == "true";
  if (!environment("NO_COLOR").empty()) return false;
  if (is_set("FORCE_COLOR") || is_set("CLICOLOR_FORCE")) return true;
  return isatty(fileno(to)) != 0 && environment("TERM") != "dumb";
}

std::string painted(const std::string& text, Ink ink, std::FILE* to) {
  return coloured(to) ? fmt::format("\x1b[{}m{}\x1b[0m", escape_of(ink), text) : text;
}

size_t columns_of(const std::string& text) {
  size_t columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
      if (i == std::string::npos) break;
      continue;
    }
    columns += (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
  }
  return columns;
}

}  // namespace rt::cli
