// Private to common/rpc: an Arrival owns an accepted socket until its preamble has been read.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/net/loop.h"
#include "common/rpc/preamble.h"

namespace rt::rpc {

// Reads exactly kPreambleBytes, together with a descriptor that may ride along on a Unix socket,
// and calls `done` once, from the loop: with the preamble, with kProtocol when the bytes are not
// one, or with kUnavailable when the peer closed or the socket failed. An Arrival takes `fd`. It
// may be destroyed at any time, also from inside `done`, and closes the descriptors that were not
// released.
class Arrival {
 public:
  using Done = std::function<void(Result<Preamble>)>;
  Arrival(net::Loop& loop, int fd, Done done);
  ~Arrival();

  int release_fd();         // The caller owns the result.
  int release_passed_fd();  // The caller owns the result; -1: none came.
  bool is_unix() const { return is_unix_; }
  const std::string& peer_name() const { return peer_name_; }

 private:
  void on_readable();
  void take_descriptors(::msghdr& message);
  void finish(Result<Preamble> result);

  int fd_;
  const bool is_unix_;
  const std::string peer_name_;
  Done done_;
  std::string received_;
  std::vector<int> passed_;
  std::unique_ptr<net::FdWatch> watch_;
};

}  // namespace rt::rpc
