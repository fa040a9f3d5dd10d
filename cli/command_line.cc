#include "cli/command_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iostream>
#include <sstream>

namespace rt::cli {
namespace {

namespace po = boost::program_options;

std::string g_program = "rayctl";

// "--num-cpus -1": the parser would take -1 for an option; the user meant a value, and gets an answer about the value.
Words with_negative_values(const Words& words) {
  Words out;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    bool takes_next = word.starts_with("--") && word.find('=') == std::string::npos && i + 1 < words.size() && words[i + 1].size() > 1 &&
                      words[i + 1][0] == '-' && (std::isdigit(static_cast<unsigned char>(words[i + 1][1])) || words[i + 1][1] == '.');
    out.push_back(takes_next ? word + "=" + words[++i] : word);
  }
  return out;
}

std::string parse_complaint(const po::error& error) {
  if (auto* unknown = dynamic_cast<const po::unknown_option*>(&error)) return "no such option: " + unknown->get_option_name();
  if (auto* twice = dynamic_cast<const po::multiple_occurrences*>(&error)) return twice->get_option_name() + " is given more than once";
  return error.what();
}

}  // namespace

const std::string& program_name() { return g_program; }
void set_program_name(std::string name) { g_program = std::move(name); }

int usage_error(const std::string& command, const std::string& message) {
  std::string line = command.empty() ? g_program : g_program + " " + command;
  fmt::print(stderr, "Error: {}\nTry '{} --help'.\n", message, line);
  return kExitUsage;
}

int failure(const Error& error) {
  std::fflush(stdout);
  fmt::print(stderr, "Error: {}\n", error.message);
  return kExitFailure;
}

CommandLine::CommandLine(std::string command, std::string summary) : visible_("Options"), command_(std::move(command)), summary_(std::move(summary)) {
  visible_.add_options()("help,h", "this text");
}

CommandLine& CommandLine::option(const std::string& name, const std::string& value_name, const std::string& help) {
  visible_.add_options()(name.c_str(), po::value<std::string>()->value_name(value_name), help.c_str());
  return *this;
}

CommandLine& CommandLine::option_list(const std::string& name, const std::string& value_name, const std::string& help) {
  visible_.add_options()(name.c_str(), po::value<Words>()->value_name(value_name), help.c_str());
  return *this;
}

CommandLine& CommandLine::flag(const std::string& name, const std::string& help) {
  visible_.add_options()(name.c_str(), help.c_str());
  return *this;
}

CommandLine& CommandLine::hidden_option(const std::string& name) {
  hidden_.add_options()(name.c_str(), po::value<std::string>(), "");
  return *this;
}

CommandLine& CommandLine::hidden_flag(const std::string& name) {
  hidden_.add_options()(name.c_str(), "");
  return *this;
}

CommandLine& CommandLine::address_option() { return option("address", "HOST:PORT", "the cluster (default: $RAY_ADDRESS, else the one last started here)"); }

CommandLine& CommandLine::format_option(const std::string& choices) {
  formats_ = choices;
  return option("format", choices, "output for people (default) or programs");
}

CommandLine& CommandLine::positional(const std::string& name, bool required) {
  positionals_.emplace_back(name, required);
  return hidden_option(name);
}

CommandLine& CommandLine::rest(const std::string& name) {
  rest_name_ = name;
  return *this;
}

std::optional<int> CommandLine::parse(const Words& words) {
  Words own = words;
  if (!rest_name_.empty()) {
    auto dashes = std::find(own.begin(), own.end(), "--");
    if (dashes != own.end()) {
      rest_.assign(dashes + 1, own.end());
      own.erase(dashes, own.end());
    }
  }
  po::options_description all;
  all.add(visible_).add(hidden_);
  po::positional_options_description places;
  for (const auto& [name, required] : positionals_) places.add(name.c_str(), 1);
  Words stray;
  try {
    // No guessing: "--res" must not silently mean something that a later release calls differently.
    auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::options_description with_stray = all;
    if (!rest_name_.empty()) {
      with_stray.add_options()("stray-words", po::value<Words>(&stray), "");
      places.add("stray-words", -1);
    }
    po::store(po::command_line_parser(with_negative_values(own)).options(with_stray).positional(places).style(style).run(), values_);
    po::notify(values_);
  } catch (const po::too_many_positional_options_error&) {
    return usage_error(command_, "more words than this command takes");
  } catch (const po::error& error) {
    return usage_error(command_, parse_complaint(error));
  }
  if (has("help")) {
    std::string usage = fmt::format("Usage: {} {} [options]", g_program, command_);
    for (const auto& [name, required] : positionals_) usage += required ? " " + name : " [" + name + "]";
    if (!rest_name_.empty()) usage += " -- " + rest_name_;
    std::ostringstream text;
    text << usage << "\n\n" << summary_ << "\n\n" << visible_;
    std::cout << text.str() << std::flush;
    return kExitOk;
  }
  if (!stray.empty()) rest_.insert(rest_.begin(), stray.begin(), stray.end());
  for (const auto& [name, required] : positionals_) {
    if (required && !has(name)) return usage_error(command_, fmt::format("{} is missing", name));
  }
  if (has("format") && !formats_.empty() && ("|" + formats_ + "|").find("|" + get("format") + "|") == std::string::npos) {
    std::string choices = formats_;
    for (size_t bar = choices.rfind('|'); bar != std::string::npos; bar = choices.rfind('|')) choices.replace(bar, 1, choices.find(" or ") == std::string::npos ? " or " : ", ");
    return usage_error(command_, fmt::format("--format is '{}': it takes {}", echoed(get("format")), choices));
  }
  return std::nullopt;
}

std::string echoed(const std::string& text) {
  constexpr size_t kMostBytes = 200;
  if (text.size() <= kMostBytes) return text;
  size_t end = kMostBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return fmt::format("{}... ({} bytes)", text.substr(0, end), text.size());
}

std::string CommandLine::get(const std::string& name, const std::string& fallback) const {
  return has(name) ? values_[name].as<std::string>() : fallback;
}

Words CommandLine::all(const std::string& name) const { return has(name) ? values_[name].as<Words>() : Words(); }

Result<std::optional<int64_t>> CommandLine::whole(const std::string& name, int64_t min, int64_t max) const {
  if (!has(name)) return std::optional<int64_t>();
  std::string text = get(name);
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max) {
    return make_error(Code::kInvalid, fmt::format("--{} is '{}': it takes a whole number from {} to {}", name, echoed(text), min, max));
  }
  return std::optional<int64_t>(value);
}

}  // namespace rt::cli
