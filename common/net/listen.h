// Listening on a TCP port that a user chose by a command-line option.
#pragma once

#include <string>

#include "common/base/status.h"

namespace rt::net {

// Does for TCP what listen_on() does. The advice in an error names the option, for example
// "--dashboard-port".
Result<int> listen_on_port(const std::string& host, int port, const char* option);

}  // namespace rt::net
