#include "launch/daemon/flags.h"

#include <fmt/core.h>

#include <boost/program_options.hpp>

#include <iostream>
#include <sstream>

#include "common/base/environment.h"
#include "common/base/small_file.h"
#include "common/base/token.h"
#include "common/config/settings.h"

namespace rt::daemon {
namespace {

namespace po = boost::program_options;

constexpr size_t kMostTokenFileBytes = 65536;

std::string flag_of(std::string setting) {
  for (char& c : setting) c = c == '_' ? '-' : c;
  return setting;
}

// Returns how Boost reads the values of a type.
const po::value_semantic* semantic_of(const Flag& flag, std::string* text) {
  return po::value(text)->value_name(flag.value_name);
}
const po::value_semantic* semantic_of(const Flag& flag, int* number) {
  return po::value(number)->value_name(flag.value_name);
}
const po::value_semantic* semantic_of(const Flag& flag, bool* value) {
  if (flag.value_name.empty()) return po::bool_switch(value);
  return po::value(value)->value_name(flag.value_name);
}
const po::value_semantic* semantic_of(const Flag& flag, std::optional<int64_t>* number) {
  return po::value<int64_t>()->value_name(flag.value_name)->notifier([number](int64_t given) {
    *number = given;
  });
}

po::options_description described(const std::string& title, const std::vector<Flag>& flags) {
  po::options_description all(title);
  for (const Flag& flag : flags) {
    const po::value_semantic* semantic =
        std::visit([&](auto* value) { return semantic_of(flag, value); }, flag.value);
    all.add_options()(flag.name.c_str(), semantic, flag.meaning.c_str());
  }
  return all;
}

}  // namespace

Result<bool> parse_flags(int argc, char** argv, const std::string& about,
                         const std::vector<Flag>& own, Flags& flags) {
  po::options_description shared = described(
      "Options of every daemon",
      {{"config", &flags.config, "FILE", "JSON file with settings"},
       {"session-dir", &flags.session_dir, "DIR", "session directory; logs go to DIR/logs"},
       {"log-file", &flags.log_file, "FILE", "log here instead"},
       {"lifeline-fd", &flags.lifeline_fd, "N", "end when this descriptor reaches end of file"},
       {"starter-fd", &flags.starter_fd, "N",
        "end when this descriptor reaches end of file before a byte comes"},
       {"token-file", &flags.token_file, "FILE",
        "file with the cluster token (default: $RAY_AUTH_TOKEN)"}});
  shared.add_options()("help,h", "this text");
  po::options_description settings("Settings");
  std::map<std::string, std::string> texts;
  for (const SettingInfo& info : setting_table()) {
    settings.add_options()(
        flag_of(info.name).c_str(), po::value(&texts[info.name])->value_name("VALUE"),
        fmt::format("{} ({}, default {})", info.meaning, info.unit, info.default_value).c_str());
  }
  po::options_description all;
  all.add(described(about, own)).add(shared).add(settings);
  po::variables_map given;
  try {
    int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(argc, argv).options(all).positional({}).style(style).run(),
              given);
    po::notify(given);
  } catch (const po::error& error) {
    return make_error(Code::kInvalid, fmt::format("{} (see --help)", error.what()));
  }
  if (given.count("help")) {
    std::cout << all;
    return false;
  }
  for (auto& [name, text] : texts) {
    if (given.count(flag_of(name))) flags.settings[name] = text;
  }
  return true;
}

Result<std::string> read_token(const Flags& flags) {
  if (flags.token_file.empty()) {
    if (environment("RAY_AUTH_MODE") == "disabled") return std::string();
    std::string token = environment("RAY_AUTH_TOKEN");
    if (!token.empty()) {
      RT_TRY(check_token_bytes(token, "RAY_AUTH_TOKEN"));
      return token;
    }
    return make_error(Code::kInvalid,
                      "there is no cluster token: give --token-file FILE or RAY_AUTH_TOKEN, or "
                      "RAY_AUTH_MODE=disabled to let everyone in");
  }
  auto text = read_small_file(flags.token_file, kMostTokenFileBytes);
  if (!text)
    return make_error(Code::kInvalid, fmt::format("--token-file {}: cannot be read: {}",
                                                  flags.token_file, text.error().message));
  std::istringstream file(*text);
  std::string token;
  if (!(file >> token))
    return make_error(Code::kInvalid, fmt::format("--token-file {}: it is empty: write the token "
                                                  "there or name another file",
                                                  flags.token_file));
  RT_TRY(check_token_bytes(token, "--token-file " + flags.token_file));
  return token;
}

Status check_port(int port) {
  if (port < 0 || port > 65535)
    return make_error(Code::kInvalid, fmt::format("--port {}: 0 (any free port) to 65535", port));
  return {};
}

}  // namespace rt::daemon
