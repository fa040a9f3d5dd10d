// Tests whether anything listens at an address, for start-up code. Blocks.
#pragma once

#include "common/net/address.h"

namespace rt::net {

enum class Listening {
  kYes,
  kNo,       // The host refused, or there is no such socket.
  kUnclear,  // No route, no such host, no permission, or no answer within `timeout_ms`.
};
// Connects, sends nothing and closes.
Listening is_listening(const Address& address, int timeout_ms);

}  // namespace rt::net
