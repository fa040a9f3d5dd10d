#include "common/daemon/flags.h"

#include <fmt/core.h>

#include <fstream>
#include <iostream>

#include "common/base/environment.h"
#include "common/base/token.h"
#include "common/config/settings.h"

namespace rt::daemon {
namespace {

namespace po = boost::program_options;

std::string flag_of(std::string setting) {
  for (char& c : setting) c = c == '_' ? '-' : c;
  return setting;
}

}  // namespace

Result<bool> parse_flags(int argc, char** argv, const po::options_description& own, Flags& flags) {
  po::options_description shared("Options of every daemon");
  shared.add_options()("help,h", "this text")(
      "config", po::value(&flags.config)->value_name("FILE"), "JSON file with settings")(
      "session-dir", po::value(&flags.session_dir)->value_name("DIR"),
      "session directory; logs go to DIR/logs")(
      "log-file", po::value(&flags.log_file)->value_name("FILE"), "log here instead")(
      "lifeline-fd", po::value(&flags.lifeline_fd)->value_name("N"),
      "end when this descriptor reaches end of file")(
      "starter-fd", po::value(&flags.starter_fd)->value_name("N"),
      "end when this descriptor reaches end of file before a byte comes")(
      "token-file", po::value(&flags.token_file)->value_name("FILE"),
      "file with the cluster token (default: $RAY_AUTH_TOKEN)");
  po::options_description settings("Settings");
  std::map<std::string, std::string> texts;
  for (const SettingInfo& info : setting_table()) {
    settings.add_options()(
        flag_of(info.name).c_str(), po::value(&texts[info.name])->value_name("VALUE"),
        fmt::format("{} ({}, default {})", info.meaning, info.unit, info.default_value).c_str());
  }
  po::options_description all;
  all.add(own).add(shared).add(settings);
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
  std::ifstream file(flags.token_file);
  std::string token;
  if (!(file >> token))
    return make_error(Code::kInvalid,
                      fmt::format("--token-file {}: cannot be read or is empty", flags.token_file));
  RT_TRY(check_token_bytes(token, "--token-file " + flags.token_file));
  return token;
}

Status check_port(int port) {
  if (port < 0 || port > 65535)
    return make_error(Code::kInvalid, fmt::format("--port {}: 0 (any free port) to 65535", port));
  return {};
}

}  // namespace rt::daemon
