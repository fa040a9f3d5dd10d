#include "common/net/websocket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "common/base/clock.h"
#include "common/base/utf8.h"
#include "common/net/websocket_accept.h"

namespace rt::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
// The socket that Beast reads and writes. Asio's own blocking sockets have no time limit.
class TimedSocket {
 public:
  using executor_type = asio::io_context::executor_type;
  TimedSocket(executor_type executor, std::unique_ptr<Channel> channel, std::string received,
              int64_t timeout_ms)
      : executor_(executor),
        channel_(std::move(channel)),
        received_(std::move(received)),
        timeout_ms_(timeout_ms) {}
  executor_type get_executor() const noexcept { return executor_; }
  Channel& channel() { return *channel_; }
  // True when a read would not block; false after `ms`.
  bool wait_readable(int64_t ms) { return !received_.empty() || channel_->wait_readable(ms); }

  template <class Buffers>
  size_t read_some(const Buffers& buffers, boost::system::error_code& error) {
    asio::mutable_buffer first = *asio::buffer_sequence_begin(buffers);
    if (!received_.empty()) {
      const size_t early = std::min(first.size(), received_.size());
      std::memcpy(first.data(), received_.data(), early);
      received_.erase(0, early);
      error = {};
      return early;
    }
    size_t n = count(channel_->read_some(first.data(), first.size(), timeout_ms_), error);
    if (n == 0 && !error) error = asio::error::eof;
    return n;
  }
  template <class Buffers>
  size_t write_some(const Buffers& buffers, boost::system::error_code& error) {
    for (auto it = asio::buffer_sequence_begin(buffers); it != asio::buffer_sequence_end(buffers);
         ++it) {
      asio::const_buffer one = *it;
      if (one.size() > 0)
        return count(channel_->write_some(one.data(), one.size(), timeout_ms_), error);
    }
    error = {};
    return 0;
  }
  template <class Buffers>
  size_t read_some(const Buffers& buffers) {
    return checked([&](auto& error) { return read_some(buffers, error); });
  }
  template <class Buffers>
  size_t write_some(const Buffers& buffers) {
    return checked([&](auto& error) { return write_some(buffers, error); });
  }

 private:
  static size_t count(ssize_t n, boost::system::error_code& error) {
    error = n >= 0 ? boost::system::error_code()
                   : boost::system::error_code(errno, boost::system::system_category());
    return n >= 0 ? static_cast<size_t>(n) : 0;
  }
  template <class Operation>
  size_t checked(Operation operation) {
    boost::system::error_code error;
    size_t n = operation(error);
    if (error) throw boost::system::system_error(error);
    return n;
  }

  executor_type executor_;
  std::unique_ptr<Channel> channel_;
  std::string received_;  // before the conversation began
  int64_t timeout_ms_;
};

// Beast calls this after the closing handshake.
void teardown(beast::role_type, TimedSocket& socket, boost::system::error_code& error) {
  ::shutdown(socket.channel().fd(), SHUT_WR);
  error = {};
}

}  // namespace

struct WebSocket::Impl {
  Impl(std::unique_ptr<Channel> channel, std::string received, int64_t timeout_ms)
      : stream(context.get_executor(), std::move(channel), std::move(received), timeout_ms) {}

  asio::io_context context;
  beast::websocket::stream<TimedSocket, false> stream;
  beast::flat_buffer received;
  bool open = true;
};

Result<std::unique_ptr<WebSocket>> accept_websocket(std::unique_ptr<Channel> channel,
                                                    const UpgradeRequest& request, std::string rest,
                                                    int64_t timeout_ms) {
  auto impl = std::make_unique<WebSocket::Impl>(std::move(channel), std::move(rest), timeout_ms);
  boost::system::error_code error;
  impl->stream.auto_fragment(false);
  impl->stream.read_message_max(64 << 10);
  impl->stream.accept(request, error);
  if (error)
    return make_error(Code::kProtocol, "the WebSocket handshake failed: " + error.message());
  impl->stream.text(true);
  return std::unique_ptr<WebSocket>(new WebSocket(std::move(impl)));
}

WebSocket::WebSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WebSocket::~WebSocket() = default;

bool WebSocket::send_text(std::string_view text) {
  if (!impl_->open) return false;
  boost::system::error_code error;
  impl_->stream.write(asio::buffer(valid_utf8(text)), error);
  return impl_->open = !error;
}

bool WebSocket::wait(int64_t ms) {
  const int64_t deadline = steady_now_us() + ms * 1000;
  while (impl_->open) {
    int64_t left_ms = (deadline - steady_now_us() + 999) / 1000;
    if (left_ms <= 0) return true;
    if (!impl_->stream.next_layer().wait_readable(left_ms)) continue;
    boost::system::error_code error;
    impl_->stream.read_some(impl_->received, 64 << 10, error);
    impl_->received.clear();
    impl_->open = !error;
  }
  return false;
}

void WebSocket::close() {
  if (!impl_->open) return;
  impl_->open = false;
  boost::system::error_code ignored;
  impl_->stream.close(beast::websocket::close_code::normal, ignored);
}

void WebSocket::break_off() { impl_->open = false; }

}  // namespace rt::net
