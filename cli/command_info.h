// What a command line takes, as data: one table per command, from which come parsing, help,
// completion, man pages and docs/cli.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rt::cli {

using Words = std::vector<std::string>;

struct OptionInfo {
  std::string name;        // without dashes
  std::string letter;      // short form, without the dash; empty: none
  std::string value_name;  // empty: a flag
  std::string help;
  Words choices;          // the values it takes; empty: any
  bool repeated = false;  // may be given several times
  bool hidden = false;    // accepted, not shown
};

struct PositionalInfo {
  std::string name;
  bool required = false;
  Words choices;  // for completion; empty: anything
};

struct CommandInfo {
  std::string name;     // as typed: "job submit"
  std::string brief;    // a few words, for lists of commands
  std::string summary;  // a sentence or two
  std::vector<OptionInfo> options;
  std::vector<PositionalInfo> positionals;
  std::string rest;       // what follows "--"; empty: nothing may
  bool is_group = false;  // only holds other commands

  const OptionInfo* option(const std::string& name) const {
    for (const auto& one : options) {
      if (one.name == name) return &one;
    }
    return nullptr;
  }
};

// The words of `name`, which "job submit" has two of.
Words words_of(const std::string& text, char separator = ' ');

}  // namespace rt::cli
