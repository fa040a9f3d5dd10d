// The command line of a daemon: the flags that all daemons share, one flag for each setting, and
// its own.
#pragma once

#include <boost/program_options.hpp>

#include <map>
#include <string>

#include "common/base/status.h"

namespace rt::daemon {

// The flags of every daemon (docs/daemon-flags.md). A daemon inherits from this to add its own.
struct Flags {
  std::string config, session_dir, log_file, token_file;
  int lifeline_fd = -1, starter_fd = -1;
  std::map<std::string, std::string> settings;  // text of the settings that were given, by name
};

// Reads the command line into `flags` and into the variables that `own` refers to. False: --help
// was printed. kInvalid names the flag.
Result<bool> parse_flags(int argc, char** argv,
                         const boost::program_options::options_description& own, Flags& flags);

// Reads the cluster token from --token-file, else from RAY_AUTH_TOKEN. Empty when
// RAY_AUTH_MODE=disabled lets everyone in, provided that no --token-file is given; kInvalid when
// there is no token or it is malformed.
Result<std::string> read_token(const Flags& flags);

// kInvalid unless `port` is a TCP port or 0 (any free port).
Status check_port(int port);

}  // namespace rt::daemon
