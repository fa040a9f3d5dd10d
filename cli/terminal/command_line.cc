#include "cli/terminal/command_line.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <boost/program_options.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "cli/terminal/examples.h"
#include "cli/terminal/help_text.h"
#include "cli/terminal/print.h"
#include "cli/terminal/style.h"
#include "cli/terminal/suggest.h"
#include "common/base/utf8.h"

namespace rt::cli {
namespace {

namespace po = boost::program_options;

std::string g_program = "rayctl";
CommandInfo* g_described = nullptr;  // Set while describe() runs.

// Turns "--num-cpus -1" into "--num-cpus=-1". The parser would take -1 for an option, but the user
// meant a value, and the error message should be about that value.
Words with_negative_values(const Words& words) {
  Words out;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    bool takes_next =
        word.starts_with("--") && word.find('=') == std::string::npos && i + 1 < words.size() &&
        words[i + 1].size() > 1 && words[i + 1][0] == '-' &&
        (std::isdigit(static_cast<unsigned char>(words[i + 1][1])) || words[i + 1][1] == '.');
    out.push_back(takes_next ? word + "=" + words[++i] : word);
  }
  return out;
}

std::string parse_complaint(const po::error& error, const CommandInfo& info) {
  if (auto* unknown = dynamic_cast<const po::unknown_option*>(&error)) {
    Words known;
    for (const auto& option : info.options) {
      if (!option.hidden) known.push_back("--" + option.name);
    }
    const std::string name =
        unknown->get_option_name().substr(0, unknown->get_option_name().find('='));
    const std::string meant = did_you_mean(name, known);
    const std::string hint = meant.empty() && !info.positionals.empty()
                                 ? fmt::format("; if {} begins with '-', write -- before it",
                                               info.positionals.front().name)
                                 : meant;
    return "no such option: " + excerpt(name) + hint;
  }
  if (auto* twice = dynamic_cast<const po::multiple_occurrences*>(&error))
    return twice->get_option_name() + " is given more than once";
  return excerpt(error.what());
}

Words given_words(const po::variable_value& value) {
  if (auto* several = boost::any_cast<Words>(&value.value())) return *several;
  if (auto* one = boost::any_cast<std::string>(&value.value())) return {*one};
  return {};
}

std::string alternatives(const Words& choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i)
    text += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
  return text;
}

// The complaint about a positional word that was not given.
std::string missing(const PositionalInfo& place) {
  const bool says_all =
      !place.choices.empty() && !place.more_values && place.name.find('|') == std::string::npos;
  return place.name + " is missing" + (says_all ? ": " + alternatives(place.choices) : "");
}

// The complaint about required options that were not given; empty if all were.
std::string missing_options(const CommandInfo& info, const std::map<std::string, Words>& given) {
  Words names;
  for (const auto& option : info.options) {
    if (option.required && !given.contains(option.name)) names.push_back("--" + option.name);
  }
  if (names.empty()) return "";
  return fmt::format("{} {} missing", fmt::join(names, " and "), names.size() == 1 ? "is" : "are");
}

// The complaint about words that neither an option nor a place takes.
std::string surplus_words(const CommandInfo& info) {
  const std::string text = "more words than this command takes";
  if (!info.positionals.empty()) return text;
  // A command without words acts on what an option names by its id.
  auto id = std::find_if(info.options.begin(), info.options.end(), [](const OptionInfo& one) {
    return !one.hidden && one.value_name == "ID";
  });
  const std::string example =
      id == info.options.end() ? "" : fmt::format(", such as --{} {}", id->name, id->value_name);
  return text + ": it takes only options" + example;
}

}  // namespace

Words words_of(const std::string& text, char separator) {
  Words words;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

const std::string& program_name() { return g_program; }
void set_program_name(std::string name) { g_program = std::move(name); }

std::optional<CommandInfo> describe(const std::function<int()>& run) {
  CommandInfo info;
  g_described = &info;
  run();
  g_described = nullptr;
  if (info.name.empty()) return std::nullopt;
  return info;
}

int usage_error(const std::string& command, const std::string& message) {
  std::fflush(stdout);
  std::string line = command.empty() ? g_program : g_program + " " + command;
  const char* end = message.ends_with('?') || message.ends_with('.') ? "" : ".";
  print(stderr, "{} {}{} Try '{} --help'.\n", painted("Error:", Ink::kBad, stderr), message, end,
        line);
  return kExitUsage;
}

int failure(const Error& error) {
  std::fflush(stdout);
  print(stderr, "{} {}\n", painted("Error:", Ink::kBad, stderr), printable(error.message, true));
  return kExitFailure;
}

CommandLine::CommandLine(std::string command, std::string summary) {
  info_.name = std::move(command);
  info_.summary = std::move(summary);
  flag("help,h", "this text");
}

CommandLine& CommandLine::add(const std::string& name, OptionInfo option) {
  size_t comma = name.find(',');
  option.name = name.substr(0, comma);
  if (comma != std::string::npos) option.letter = name.substr(comma + 1);
  info_.options.push_back(std::move(option));
  return *this;
}

CommandLine& CommandLine::option(const std::string& name, const std::string& value_name,
                                 const std::string& help) {
  return add(name, {.value_name = value_name, .help = help});
}

CommandLine& CommandLine::option_list(const std::string& name, const std::string& value_name,
                                      const std::string& help) {
  return add(name, {.value_name = value_name, .help = help, .repeated = true});
}

CommandLine& CommandLine::choice(const std::string& name, const std::string& values,
                                 const std::string& help) {
  return add(name, {.value_name = values, .help = help, .choices = words_of(values, '|')});
}

CommandLine& CommandLine::required() {
  info_.options.back().required = true;
  return *this;
}

CommandLine& CommandLine::flag(const std::string& name, const std::string& help) {
  return add(name, {.help = help});
}
CommandLine& CommandLine::hidden_option(const std::string& name) {
  return add(name, {.value_name = "VALUE", .hidden = true});
}
CommandLine& CommandLine::hidden_flag(const std::string& name) {
  return add(name, {.hidden = true});
}

CommandLine& CommandLine::address_option() {
  return option("address", "HOST:PORT",
                "the cluster (default: $RAY_ADDRESS, else the one last started here)");
}
CommandLine& CommandLine::format_option(const std::string& choices) {
  return choice("format", choices, "output for people (default) or programs");
}

CommandLine& CommandLine::timeout_option(const std::string& help) {
  has_timeout_ = true;
  return option("timeout", "SECONDS", help);
}

CommandLine& CommandLine::log_options() {
  choice("log-color", "auto|true|false",
         "colours (default auto: on a terminal, unless NO_COLOR is set)")
      .choice("log-style", "auto|record|pretty", "");
  // Accepted for Ray's scripts; there is only one style.
  info_.options.back().hidden = true;
  return *this;
}

CommandLine& CommandLine::positional(const std::string& name, bool required,
                                     const std::string& values, bool more_values) {
  info_.positionals.push_back({name, required, words_of(values, '|'), more_values});
  return *this;
}

CommandLine& CommandLine::rest(const std::string& name) {
  info_.rest = name;
  return *this;
}

int CommandLine::usage(const std::string& message) const {
  return usage_error(info_.name, message);
}

std::optional<int> CommandLine::parse(const Words& words) {
  if (g_described) {
    *g_described = info_;
    return kExitOk;
  }
  if (auto code = read(words)) return code;
  if (has("log-color")) set_colours(get("log-color"));
  if (has("help")) {
    write_output(help_text(info_, examples_of(info_.name)));
    return kExitOk;
  }
  return check_values();
}

std::optional<int> CommandLine::read(const Words& words) {
  Words own = words, stray;
  if (!info_.rest.empty()) {
    auto dashes = std::find(own.begin(), own.end(), "--");
    if (dashes != own.end()) {
      rest_.assign(dashes + 1, own.end());
      own.erase(dashes, own.end());
    }
  }
  po::options_description all;
  for (const auto& option : info_.options) {
    std::string name = option.letter.empty() ? option.name : option.name + "," + option.letter;
    if (option.value_name.empty()) {
      all.add_options()(name.c_str(), "");
    } else if (option.repeated) {
      all.add_options()(name.c_str(), po::value<Words>(), "");
    } else {
      all.add_options()(name.c_str(), po::value<std::string>(), "");
    }
  }
  po::positional_options_description places;
  for (const auto& place : info_.positionals) {
    all.add_options()(place.name.c_str(), po::value<std::string>(), "");
    places.add(place.name.c_str(), 1);
  }
  if (!info_.rest.empty()) {
    all.add_options()("stray-words", po::value<Words>(&stray), "");
    places.add("stray-words", -1);
  }
  try {
    // Abbreviations are refused: the meaning of "--res" would change when a later release adds an
    // option with the same beginning.
    auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::variables_map given;
    po::store(po::command_line_parser(with_negative_values(own))
                  .options(all)
                  .positional(places)
                  .style(style)
                  .run(),
              given);
    po::notify(given);
    for (const auto& [name, value] : given) values_[name] = given_words(value);
  } catch (const po::too_many_positional_options_error&) {
    return usage(surplus_words(info_));
  } catch (const po::error& error) {
    return usage(parse_complaint(error, info_));
  }
  rest_.insert(rest_.begin(), stray.begin(), stray.end());
  return std::nullopt;
}

// All values must be UTF-8, because they are stored as text and shown in lists and JSON. File names
// are exempt: the kernel accepts any bytes.
std::optional<int> CommandLine::check_texts() const {
  auto is_text = [](const std::string& text) { return valid_utf8(text) == text; };
  for (const auto& place : info_.positionals) {
    if (!is_text(get(place.name)))
      return usage(fmt::format("{} is '{}': it is not valid UTF-8", place.name,
                               valid_utf8(excerpt(get(place.name)))));
  }
  for (const auto& option : info_.options) {
    if (option.value_name == "FILE" || !has(option.name)) continue;
    for (const std::string& value : all(option.name)) {
      if (!is_text(value))
        return usage(fmt::format("--{} is '{}': it is not valid UTF-8", option.name,
                                 valid_utf8(excerpt(value))));
    }
  }
  return std::nullopt;
}

std::optional<int> CommandLine::check_values() const {
  if (auto code = check_texts()) return code;
  for (const auto& place : info_.positionals) {
    if (place.required && !has(place.name)) return usage(missing(place));
    // A script that expands an unset variable passes an empty word.
    if (place.required && get(place.name).empty())
      return usage(fmt::format("{} is empty", place.name));
  }
  if (const std::string text = missing_options(info_, values_); !text.empty()) return usage(text);
  if (has_timeout_) {
    if (auto seconds = whole("timeout", 1, kLongestTimeoutS); !seconds)
      return usage(seconds.error().message);
  }
  for (const auto& option : info_.options) {
    if (option.choices.empty() || !has(option.name)) continue;
    const std::string value = get(option.name);
    if (std::find(option.choices.begin(), option.choices.end(), value) == option.choices.end()) {
      return usage(fmt::format("--{} is '{}': it takes {}", option.name, excerpt(value),
                               alternatives(option.choices)));
    }
  }
  return std::nullopt;
}

std::string excerpt(const std::string& text) {
  constexpr size_t kMostBytes = 200;
  if (text.size() <= kMostBytes) return text;
  size_t end = kMostBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return fmt::format("{}... ({} bytes)", text.substr(0, end), text.size());
}

std::string CommandLine::get(const std::string& name, const std::string& fallback) const {
  auto given = values_.find(name);
  return given == values_.end() || given->second.empty() ? fallback : given->second.back();
}

Words CommandLine::all(const std::string& name) const {
  return has(name) ? values_.at(name) : Words();
}

Result<std::optional<int64_t>> CommandLine::whole(const std::string& name, int64_t min,
                                                  int64_t max) const {
  if (!has(name)) return std::optional<int64_t>();
  std::string text = get(name);
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max) {
    return make_error(Code::kInvalid,
                      fmt::format("{}{} is '{}': it takes a whole number from {} to {}",
                                  info_.option(name) ? "--" : "", name, excerpt(text), min, max));
  }
  return std::optional<int64_t>(value);
}

Result<std::optional<int64_t>> CommandLine::milliseconds(const std::string& name, int64_t min,
                                                         int64_t max) const {
  if (!has(name)) return std::optional<int64_t>();
  const std::string text = get(name);
  double seconds = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed);
  const double ms = seconds * 1000;
  if (error != std::errc() || end != text.data() + text.size() ||
      !(ms >= static_cast<double>(min) && ms <= static_cast<double>(max))) {
    return make_error(
        Code::kInvalid,
        fmt::format("--{} is '{}': it takes seconds from {:g} to {:g}", name, excerpt(text),
                    static_cast<double>(min) / 1000, static_cast<double>(max) / 1000));
  }
  return std::optional<int64_t>(static_cast<int64_t>(ms + 0.5));
}

Result<std::optional<int64_t>> CommandLine::duration_us(const std::string& name) const {
  if (!has(name)) return std::optional<int64_t>();
  static const std::map<std::string, int64_t, std::less<>> kUnits = {
      {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
  constexpr int64_t kMaxValue = 1'000'000;
  std::string text = get(name);
  int64_t value = 0;
  const char* text_end = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), text_end, value);
  auto unit = kUnits.find(std::string_view(end, static_cast<size_t>(text_end - end)));
  if (error != std::errc() || unit == kUnits.end() || value < 1 || value > kMaxValue) {
    return make_error(Code::kInvalid,
                      fmt::format("--{} is '{}': it takes a duration, as 90s, 5m, 2h or 1d", name,
                                  excerpt(text)));
  }
  return std::optional<int64_t>(value * unit->second * 1'000'000);
}

}  // namespace rt::cli
