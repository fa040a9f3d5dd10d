#include "cli/terminal/help_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "cli/terminal/command_line.h"
#include "cli/terminal/style.h"

namespace rt::cli {
namespace {

constexpr size_t kWidth = 110, kMostHeading = 30;

// Formats rows of (what is typed, its meaning) as two aligned columns.
std::string two_columns(const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t width = 0;
  for (const auto& [left, right] : rows) {
    if (left.size() <= kMostHeading) width = std::max(width, left.size());
  }
  std::string out;
  for (const auto& [left, right] : rows) {
    out += left.size() <= width ? fmt::format("  {:<{}}  ", left, width)
                                : fmt::format("  {}\n{}", left, std::string(width + 4, ' '));
    out += wrapped(right, width + 4, kWidth) + "\n";
  }
  return out;
}

// Returns the word for the option's value in the usage line. An option with choices is named by its
// own name, because the table of options lists its values.
std::string value_word(const OptionInfo& option) {
  if (option.choices.empty()) return option.value_name;
  std::string text = option.name;
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::string wrapped(const std::string& text, size_t indent, size_t width) {
  std::string out;
  size_t column = indent;
  for (const std::string& word : words_of(text)) {
    bool first = out.empty();
    if (!first && column + 1 + columns_of(word) > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      first = true;
    }
    out += (first ? "" : " ") + word;
    column += columns_of(word) + (first ? 0 : 1);
  }
  return out;
}

std::string option_heading(const OptionInfo& option) {
  std::string text =
      option.letter.empty() ? "    --" + option.name : "-" + option.letter + ", --" + option.name;
  return option.value_name.empty() ? text : text + " " + option.value_name;
}

std::string usage_line(const CommandInfo& info) {
  std::string line = fmt::format("{} {} {}", program_name(), info.name,
                                 info.is_group ? "COMMAND [options]" : "[options]");
  for (const auto& option : info.options) {
    if (option.required) line += " --" + option.name + " " + value_word(option);
  }
  for (const auto& place : info.positionals)
    line += place.required ? " " + place.name : " [" + place.name + "]";
  if (!info.rest.empty()) line += " -- " + info.rest;
  return line;
}

std::string help_text(const CommandInfo& info, const std::vector<Example>& examples) {
  std::string text =
      fmt::format("Usage: {}\n\n{}\n\n{}\n", usage_line(info), wrapped(info.summary, 0, kWidth),
                  painted("Options:", Ink::kTitle));
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& option : info.options) {
    if (!option.hidden) rows.emplace_back(option_heading(option), option.help);
  }
  text += two_columns(rows);
  if (examples.empty()) return text;
  text += "\n" + painted("Examples:", Ink::kTitle) + "\n";
  for (const Example& one : examples)
    text += fmt::format("  {} {}\n      {}\n", program_name(), one.line,
                        painted(one.what, Ink::kFaint));
  return text;
}

std::string commands_text(const std::string& group, const std::vector<CommandInfo>& all) {
  std::string prefix = group.empty() ? "" : group + " ";
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& info : all) {
    if (!info.name.starts_with(prefix) || info.name == group) continue;
    std::string rest = info.name.substr(prefix.size());
    if (rest.find(' ') == std::string::npos) rows.emplace_back(rest, info.brief);
  }
  return fmt::format(
      "Usage: {} {}COMMAND [options]\n\n{}\n{}\n'{} help {}COMMAND' shows a command's options and "
      "examples.\n",
      program_name(), prefix, painted("Commands:", Ink::kTitle), two_columns(rows), program_name(),
      prefix);
}

}  // namespace rt::cli
