// What a client sends first: 80 bytes of plain text that name the process it wants behind this
// port.
//
//   "RAY1 " + target padded to 10 + " " + id padded to 56 hex digits + spaces up to 79 + "\n"
//
// target: "self" (whoever listens: head, store, worker sockets; the node-manager itself), "store",
// "worker" (id = worker id), and, on Unix sockets only, "handoff" (the sender passes an accepted
// socket along, whose own preamble was already read) and "arena" (object store: answers with the
// arena's descriptors and closes). The acceptor reads exactly 80 bytes with recvmsg, so that
// nothing behind them is lost when the socket is handed on.
#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace rt::rpc {

inline constexpr size_t kPreambleBytes = 80;

struct Preamble {
  std::string target = "self";
  std::string id;  // hex, may be empty
};

std::string encode_preamble(const Preamble& preamble);
Result<Preamble> decode_preamble(std::string_view bytes);

}  // namespace rt::rpc
