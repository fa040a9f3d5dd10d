// The first 80 bytes that a client sends: plain text that names the process it wants to reach at
// this address.
//
//   "RAY1 " + target padded to 10 + " " + id padded to 56 hex digits + spaces up to 79 + "\n"
//
// Targets:
//   self     the process that listens: the head, a store, a worker, or the node-manager itself
//   store    the object store of the node
//   worker   the worker of the node whose id is given
//   handoff  Unix sockets only: the sender passes on an accepted socket and has read its preamble
//   arena    Unix sockets only: the object store sends the arena's descriptors and closes
//
// The acceptor reads exactly 80 bytes with recvmsg(), so that nothing behind them is lost when the
// socket is handed on.
#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace rt::rpc {

inline constexpr size_t kPreambleBytes = 80;

struct Preamble {
  std::string target = "self";
  std::string id;  // In hex digits; may be empty.
};

// RT_CHECKs that target and id fit.
std::string encode_preamble(const Preamble& preamble);
// kProtocol names what is malformed.
Result<Preamble> decode_preamble(std::string_view bytes);

}  // namespace rt::rpc
