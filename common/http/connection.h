// One connection of an HTTP client, served by one thread: reads requests and writes answers.
//
// The head of a request is parsed once, by Boost.Beast, which also unpacks chunked bodies; the
// WebSocket handshake takes the parsed request over. Everything blocks, for a bounded time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/http/access.h"
#include "common/http/message.h"
#include "common/net/channel.h"
#include "common/net/websocket.h"

namespace rt::http {

// "Not Found" for 404.
std::string reason_of(int status);

class Connection final : public Client {
 public:
  // `ending` says that the server is ending.
  Connection(std::unique_ptr<net::Channel> channel, int64_t io_timeout_ms,
             const std::atomic<bool>& ending);
  ~Connection() override;

  enum class Next { kRequest, kRefused, kNone };
  // Waits for the head of a request, up to `idle_ms` for its first byte. kRefused: it is no request
  // that can be answered, `refusal` says why, and the connection must end. kNone: it has ended.
  Next read_head(int64_t idle_ms, Refusal* refusal);
  const Request& request() const { return request_; }
  bool asks_for_websocket() const;
  // Reads the body, of at most `most` bytes when it is unpacked.
  Refusal read_body(size_t most, std::string* body);
  bool brings_body() const;
  // Means that no request can follow, because a body is left unread.
  void leave_body() { gives_up_ = true; }

  // Writes the answer to the request. False when no request can follow.
  bool answer(const Response& response);
  // Writes an answer after which the connection ends.
  void refuse(const Refusal& refusal);
  // To be called after the last answer: ends our direction and reads for a while what still
  // arrives, so that the peer gets to read the answer.
  void drain();
  // Answers the handshake. What belongs to the connection lives as long as it does, and is the only
  // way to use it from then on. kProtocol when the handshake fails.
  Result<net::WebSocket*> become_websocket();

  bool waits() const override { return !ending_ && !(channel_ && channel_->peer_closed()); }

 private:
  struct Parser;
  enum class Whole { kYes, kNo, kTooLarge };
  Whole await_head(int64_t idle_ms, size_t* size);
  void adopt_head();
  Refusal check_framing(size_t most) const;
  // Gives the pieces of the body to `take`, which returns false when it has had enough. False: the
  // body is not whole.
  bool each_piece(const std::function<bool(std::string_view)>& take);
  // Reads more into the buffer. False: nothing came.
  bool fill(int64_t timeout_ms);
  bool write(std::string_view data);
  bool packs(const Response& response) const;
  bool write_pieces(const Response& response, bool in_chunks, bool packed);

  std::unique_ptr<net::Channel> channel_;  // null once there is a WebSocket
  std::unique_ptr<net::WebSocket> websocket_;
  const int64_t io_timeout_ms_;
  const std::atomic<bool>& ending_;
  std::string buffer_;  // received, and not yet parsed
  std::unique_ptr<Parser> parser_;
  Request request_;
  bool gives_up_ = false;
};

}  // namespace rt::http
