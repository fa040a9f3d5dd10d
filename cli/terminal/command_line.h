// Declares and parses the command line of one command: options by name, positional words, and the
// words behind "--". Boost.Program_options does the parsing and stays inside command_line.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/command_info.h"
#include "common/base/status.h"

namespace rt::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// A command declares its options, calls parse() once, and then reads the values.
class CommandLine {
 public:
  // `command` is the name as typed, for example "job submit"; `summary` is one sentence.
  CommandLine(std::string command, std::string summary);

  // `name` may include a short form: "output,o". Values stay text; whole(), milliseconds() and
  // duration_us() convert and check them when they are read.
  CommandLine& option(const std::string& name, const std::string& value_name,
                      const std::string& help);
  // An option that may be given several times; all() returns its values.
  CommandLine& option_list(const std::string& name, const std::string& value_name,
                           const std::string& help);
  // An option that takes one of `values`, which is written "a|b|c". parse() refuses other values.
  CommandLine& choice(const std::string& name, const std::string& values, const std::string& help);
  // The option that was declared last must be given: the usage line shows it, and parse() names all
  // such options that are missing.
  CommandLine& required();
  CommandLine& flag(const std::string& name, const std::string& help);
  CommandLine& hidden_option(const std::string& name);
  CommandLine& hidden_flag(const std::string& name);
  CommandLine& address_option();
  CommandLine& format_option(const std::string& choices = "table|json|yaml");
  // --timeout takes whole seconds up to kLongestTimeoutS; parse() refuses other values.
  static constexpr int64_t kLongestTimeoutS = 24 * 3600;
  CommandLine& timeout_option(const std::string& help = "for the answer (default 30)");
  CommandLine& log_options();  // --log-style, --log-color, -v
  // `values` ("a|b|c") is offered by completion and by the error for a missing word; the command
  // checks the word itself. With `more_values` it takes other words, too.
  CommandLine& positional(const std::string& name, bool required, const std::string& values = "",
                          bool more_values = false);
  // Accepts further words: all behind "--", or positional words that no option consumes.
  CommandLine& rest(const std::string& name);

  // Returns an exit code when the command has nothing more to do: --help was answered, a usage
  // error was printed, or the caller is describe(), which only wants the table.
  std::optional<int> parse(const Words& words);

  bool has(const std::string& name) const { return values_.contains(name); }
  std::string get(const std::string& name, const std::string& fallback = "") const;
  // All values of an option_list; empty when the option is absent.
  Words all(const std::string& name) const;
  const Words& rest_words() const { return rest_; }
  bool for_programs() const { return get("format") == "json" || get("format") == "yaml"; }
  // The value of an option as a number, or nullopt when the option is absent. The error kInvalid
  // names the option, its value and what the option takes.
  //
  // A whole number from `min` to `max`.
  Result<std::optional<int64_t>> whole(const std::string& name, int64_t min, int64_t max) const;
  // Seconds with or without a fraction, returned in milliseconds; `min` and `max` are milliseconds.
  Result<std::optional<int64_t>> milliseconds(const std::string& name, int64_t min,
                                              int64_t max) const;
  // A duration such as "90s", "5m", "2h" or "1d", returned in microseconds.
  Result<std::optional<int64_t>> duration_us(const std::string& name) const;

 private:
  CommandLine& add(const std::string& name, OptionInfo option);
  int usage(const std::string& message) const;
  std::optional<int> read(const Words& words);
  std::optional<int> check_texts() const;
  std::optional<int> check_values() const;

  CommandInfo info_;
  // The values of the options that were given, by name; a flag has none.
  std::map<std::string, Words> values_;
  Words rest_;
  bool has_timeout_ = false;
};

// Returns the table of the command that `run` starts: `run` declares its options and calls parse(),
// which copies the table and returns at once. Returns nullopt when `run` never calls parse().
// Uses a process-wide variable, so only one thread may call it.
std::optional<CommandInfo> describe(const std::function<int()>& run);

// Both print one line "Error: ..." to stderr. usage_error() returns kExitUsage and points to the
// help of `command`; failure() returns kExitFailure.
int usage_error(const std::string& command, const std::string& message);
int failure(const Error& error);
inline int finish(const Status& status) { return status ? kExitOk : failure(status.error()); }
inline int finish(const Result<int>& code) { return code ? *code : failure(code.error()); }

// `text` as error messages quote it: a text of more than 200 bytes is cut between two characters
// and followed by its size.
std::string excerpt(const std::string& text);

// The name by which the user started this program: `rayctl` or `ray`.
const std::string& program_name();
void set_program_name(std::string name);

}  // namespace rt::cli
