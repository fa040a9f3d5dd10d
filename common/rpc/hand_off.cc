// Passes an accepted socket to another process, or refuses it.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/sockets.h"
#include "common/proto/rpc.pb.h"
#include "common/rpc/frame.h"
#include "common/rpc/preamble.h"
#include "common/rpc/refusal.h"
#include "common/rpc/server.h"

namespace rt::rpc {
namespace {

constexpr int64_t kConnectTimeoutUs = 5'000'000;

}  // namespace

void refuse_socket(int fd, const Error& why) {
  proto::RpcError message;
  message.set_code(static_cast<int>(why.code));
  message.set_message(why.message);
  std::string body = message.SerializeAsString();
  FrameHeader header{.body_bytes = static_cast<uint32_t>(body.size()),
                     .message_bytes = static_cast<uint32_t>(body.size()),
                     .kind = FrameKind::kError};
  std::string frame(kHeaderBytes, '\0');
  encode_header(header, reinterpret_cast<uint8_t*>(frame.data()));
  frame += body;
  (void)!::send(fd, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(fd, SHUT_WR);
  // The input is read first: closing a socket with unread input would reset the connection, and the
  // peer would lose the message.
  char drop[4096];
  for (int i = 0; i < 16 && ::recv(fd, drop, sizeof(drop), MSG_DONTWAIT) > 0; ++i) {}
  ::close(fd);
}

void hand_off(net::Loop& loop, const std::string& unix_path, int fd,
              std::function<void(Status)> done) {
  // The descriptor is shared, because a std::function must be copyable.
  auto passed = std::make_shared<Fd>(fd);
  loop.connect(net::Address::unix_socket(unix_path), kConnectTimeoutUs,
               [passed, done = std::move(done)](Result<std::unique_ptr<net::Stream>> stream) {
                 Status status;
                 if (!stream) {
                   status = std::move(stream).error();
                 } else {
                   // The buffer of a new socket has room for 80 bytes, so this does not wait.
                   int descriptor = passed->get();
                   status = net::send_with_fds((*stream)->native_handle(),
                                               encode_preamble({"handoff", {}}), &descriptor, 1);
                 }
                 if (!status) {
                   refuse_socket(passed->release(),
                                 make_error(Code::kUnavailable,
                                            "the process behind this address does not answer: " +
                                                status.error().message));
                 }
                 passed->reset();
                 if (done) done(std::move(status));
               });
}

}  // namespace rt::rpc
