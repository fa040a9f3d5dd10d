// The command line of a daemon: the flags that all daemons share, one flag for each setting, and
// its own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/status.h"

namespace rt::daemon {

// The flags of every daemon (docs/daemon-flags.md). A daemon inherits from this to add its own.
struct Flags {
  std::string config, session_dir, log_file, token_file;
  int lifeline_fd = -1, starter_fd = -1;
  // The text of the settings that were given, by name.
  std::map<std::string, std::string> settings;
};

// A flag of one daemon: --NAME VALUE_NAME. Without a name for its value it is a switch, and `value`
// is a bool*. A variable of a flag that is not given keeps its value.
struct Flag {
  std::string name;
  std::variant<std::string*, int*, bool*, std::optional<int64_t>*> value;
  std::string value_name, meaning;
};

// Reads the command line into `flags` and into the variables of `own`. `about` is the first line of
// --help: the program and its purpose. False: --help was printed. kInvalid names the flag.
Result<bool> parse_flags(int argc, char** argv, const std::string& about,
                         const std::vector<Flag>& own, Flags& flags);

// Reads the cluster token from --token-file, else from RAY_AUTH_TOKEN. Empty when
// RAY_AUTH_MODE=disabled lets everyone in, provided that no --token-file is given; kInvalid when
// there is no token or it is malformed.
Result<std::string> read_token(const Flags& flags);

// kInvalid unless `port` is a TCP port or 0 (any free port).
Status check_port(int port);

}  // namespace rt::daemon
