// The command line of a daemon: the flags all of them have, one flag per setting, and its own.
#pragma once

#include <boost/program_options.hpp>

#include <map>
#include <string>

#include "common/base/status.h"

namespace rt::daemon {

// Those every daemon has (docs/daemon-flags.md). A daemon adds its own by inheriting.
struct Flags {
  std::string config, session_dir, log_file, token_file;
  int lifeline_fd = -1;
  std::map<std::string, std::string> settings;  // those given, by name
};

// Reads the command line into `flags` and what `own` refers to. False: --help was answered.
// kInvalid names the flag.
Result<bool> parse_flags(int argc, char** argv,
                         const boost::program_options::options_description& own, Flags& flags);

// The cluster token: of --token-file, else RAY_AUTH_TOKEN. Empty when RAY_AUTH_MODE=disabled lets
// everyone in.
Result<std::string> read_token(const Flags& flags);

// kInvalid unless it is a TCP port from 0 (any free one).
Status check_port(int port);

}  // namespace rt::daemon
