// The options and words that a command takes, as data. There is one CommandInfo per command;
// parsing, help, completion, the man pages and docs/cli.md are all derived from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rt::cli {

using Words = std::vector<std::string>;

struct OptionInfo {
  std::string name;        // The name without dashes.
  std::string letter;      // The short form, without its dash; empty if there is none.
  std::string value_name;  // The placeholder in help texts; empty for a flag.
  std::string help;
  Words choices;          // The accepted values; empty if any value is accepted.
  bool repeated = false;  // Whether it may be given several times.
  bool hidden = false;    // Accepted, but left out of help and completion.
  bool required = false;  // Whether the command refuses to run without it.
};

struct PositionalInfo {
  std::string name;
  bool required = false;
  Words choices;             // Offered by completion, not enforced; empty if any word is accepted.
  bool more_values = false;  // Whether words beside `choices` are accepted, too.
};

struct CommandInfo {
  std::string name;     // The name as typed: "job submit".
  std::string brief;    // A few words, for lists of commands.
  std::string summary;  // A sentence or two.
  std::vector<OptionInfo> options;
  std::vector<PositionalInfo> positionals;
  std::string rest;       // The placeholder for the words behind "--"; empty if none are accepted.
  bool is_group = false;  // Whether it has no options of its own, only subcommands.

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
