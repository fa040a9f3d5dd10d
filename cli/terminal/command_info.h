// The options and words that a command takes, as data. There is one CommandInfo per command;
// parsing, help, completion, the man pages and docs/cli.md are all derived from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rt::cli {

using Words = std::vector<std::string>;

struct OptionInfo {
  std::string name;        // without dashes
  std::string letter;      // the short form, without its dash; empty if there is none
  std::string value_name;  // placeholder in help texts; empty for a flag
  std::string help;
  Words choices;          // the accepted values; empty if any value is accepted
  bool repeated = false;  // may be given several times
  bool hidden = false;    // accepted, but left out of help and completion
};

struct PositionalInfo {
  std::string name;
  bool required = false;
  Words choices;             // offered by completion, not enforced; empty if any word is accepted
  bool more_values = false;  // words beside `choices` are accepted, too
};

struct CommandInfo {
  std::string name;     // as typed: "job submit"
  std::string brief;    // a few words, for lists of commands
  std::string summary;  // a sentence or two
  std::vector<OptionInfo> options;
  std::vector<PositionalInfo> positionals;
  std::string rest;       // placeholder for the words behind "--"; empty if none are accepted
  bool is_group = false;  // has no options of its own, only subcommands

  const OptionInfo* option(const std::string& name) const {
    for (const auto& one : options) {
      if (one.name == name) return &one;
    }
    return nullptr;
  }
};

// Splits `text` at `separator` and drops empty words: "job submit" has two.
Words words_of(const std::string& text, char separator = ' ');

}  // namespace rt::cli
