// Private to common/rpc: an accepted socket until its preamble has been read.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/net/loop.h"
#include "common/rpc/preamble.h"

namespace rt::rpc {

// Reads exactly 80 bytes, with the descriptors that may ride along on a Unix socket, and calls
// `done` once, from the loop. It may be destroyed at any time, also by `done`; closes what it still
// holds.
class Arrival {
 public:
  using Done = std::function<void(Result<Preamble>)>;
  Arrival(net::Loop& loop, int fd, Done done);
  ~Arrival();

  int release_fd();         // the caller's from here on
  int release_passed_fd();  // -1: none came
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
