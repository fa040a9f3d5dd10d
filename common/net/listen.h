// A TCP port that a person chose by an option.
#pragma once

#include <string>

#include "common/base/status.h"

namespace rt::net {

// listen_on() of TCP. The error's advice names the option: "--dashboard-port".
Result<int> listen_on_port(const std::string& host, int port, const char* option);

}  // namespace rt::net
