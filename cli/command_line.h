// The command line of one command: options by name, positional words, and what follows "--".
// Boost.Program_options inside.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_info.h"
#include "common/base/status.h"

namespace rt::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

class CommandLine {
 public:
  // `command`: as typed, e.g. "job submit"; `summary`: one sentence.
  CommandLine(std::string command, std::string summary);

  // `name` may hold a short form: "output,o". Values are text until they are asked for.
  CommandLine& option(const std::string& name, const std::string& value_name,
                      const std::string& help);
  CommandLine& option_list(const std::string& name, const std::string& value_name,
                           const std::string& help);  // may be given several times
  CommandLine& choice(const std::string& name, const std::string& values,
                      const std::string& help);  // one of "a|b|c"
  CommandLine& flag(const std::string& name, const std::string& help);
  CommandLine& hidden_option(const std::string& name);
  CommandLine& hidden_flag(const std::string& name);
  CommandLine& address_option();
  CommandLine& format_option(const std::string& choices = "table|json|yaml");
  CommandLine& log_options();  // --log-style, --log-color, -v
  CommandLine& positional(const std::string& name, bool required,
                          const std::string& values = "");  // values: "a|b|c", for completion
  CommandLine& rest(
      const std::string& name);  // words after "--" (or after the first that is no option)

  // An exit code when there is nothing more to do: --help was answered, a usage error was printed,
  // or only the table was wanted (describe()).
  std::optional<int> parse(const Words& words);

  bool has(const std::string& name) const { return values_.contains(name); }
  std::string get(const std::string& name, const std::string& fallback = "") const;
  Words all(const std::string& name) const;  // of an option_list
  const Words& rest_words() const { return rest_; }
  bool for_programs() const { return get("format") == "json" || get("format") == "yaml"; }
  // kInvalid names the option, its value and what it takes; nothing when the option is absent.
  Result<std::optional<int64_t>> whole(const std::string& name, int64_t min, int64_t max) const;
  // Of an option in seconds, with a fraction or without; the bounds are milliseconds, too.
  Result<std::optional<int64_t>> milliseconds(const std::string& name, int64_t min,
                                              int64_t max) const;
  // Of "90s", "5m", "2h" or "1d", in microseconds; the same.
  Result<std::optional<int64_t>> duration_us(const std::string& name) const;

 private:
  CommandLine& add(const std::string& name, OptionInfo option);
  int usage(const std::string& message) const;
  std::optional<int> read(const Words& words);
  std::optional<int> check_texts() const;
  std::optional<int> check_values() const;

  CommandInfo info_;
  std::map<std::string, Words> values_;  // of what was given; flags have none
  Words rest_;
};

// The table of the command that `run` starts: it comes as far as parse(), which does nothing else
// then. Nothing when it does not come that far.
std::optional<CommandInfo> describe(const std::function<int()>& run);

// Prints "Error: ..." to stderr, one line; the exit code of a usage error, of any other failure.
int usage_error(const std::string& command, const std::string& message);
int failure(const Error& error);
inline int finish(const Status& status) { return status ? kExitOk : failure(status.error()); }
inline int finish(const Result<int>& code) { return code ? *code : failure(code.error()); }

// As much of what the user typed as a message needs: the beginning of a long text, cut between
// characters, and its size.
std::string echoed(const std::string& text);
// Of a file that an option names; nothing when it cannot be read, as a directory cannot.
std::optional<std::string> file_text(const std::string& path);

// `rayctl` or `ray`: what the user typed.
const std::string& program_name();
void set_program_name(std::string name);

}  // namespace rt::cli
