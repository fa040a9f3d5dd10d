// The fixture of the tests of the HTTP server: one on loopback, and clients that send raw bytes.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "common/base/clock.h"
#include "common/http/server.h"
#include "common/net/asio_loop.h"
#include "common/net/sockets.h"

namespace rt::http {
using testing::HasSubstr;

inline std::string handshake(const std::string& path, const std::string& token = "secret",
                             const std::string& more = "") {
  return "GET " + path +
         " HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: "
         "Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
         "Authorization: Bearer " +
         token + "\r\n" + more + "\r\n";
}

inline std::string two_chunks(size_t bytes) {
  const std::string chunk = fmt::format("{:x}\r\n{}\r\n", bytes, std::string(bytes, 'x'));
  return chunk + chunk + "0\r\n\r\n";
}

class HttpTest : public testing::Test {
 protected:
  void begin(ServerOptions options = {.token = "secret"}) {
    server = std::make_unique<Server>(loop, std::move(options));
    server->on(
        "GET", "/open", [](Call& call) { text(call.response, 200, "for all"); }, Access::kOpen);
    server->on(
        "POST", "/open",
        [](Call& call) { text(call.response, 200, fmt::format("{} bytes", call.body.size())); },
        Access::kOpen);
    server->on("GET", "/items/([^/]+)", [](Call& call) {
      text(call.response, 200, call.parts[0] + " " + call.query("n", "none"));
    });
    server->on("POST", "/echo", [](Call& call) { json(call.response, 200, call.body); });
    server->on("GET", "/big", [](Call& call) {
      text(call.response, 200, std::string(100'000, 'x'));
      call.response.set_header("X-Odd", "a\r\nX-Forged: b");
    });
    server->on("GET", "/three", [](Call& call) {
      call.response.set_chunked_content_provider("text/plain", [left = 3](Sink& sink) mutable {
        if (--left == 0) sink.done();
        return sink.write("piece", 5) && sink.write("", 0);
      });
    });
    server->on("GET", "/raises", [](Call&) { throw std::runtime_error("of the handler"); });
    server->on("GET", "/long", [this](Call& call) {
      call.response.set_chunked_content_provider("text/plain", [this](Sink& sink) {
        ++pieces;
        return sink.write("piece\n", 6) && sink.client().waits();
      });
    });
    server->on_websocket(
        "/talk/([a-z]+)",
        [](Call& call) {
          if (call.parts[0] == "nobody") text(call.response, 404, "no such one");
        },
        [this](net::WebSocket& socket, const Call& call) {
          socket.send_text("hello " + call.parts[0] + "\xff");
          while (socket.wait(10)) ++waits;
          ++ended;
        });
    server->on_websocket(
        "/breaks-off", [](Call&) {},
        [](net::WebSocket& socket, const Call&) {
          socket.send_text("a part");
          socket.break_off();
        });
    server->on_websocket(
        "/raises/(early|late)",
        [](Call& call) {
          if (call.parts[0] == "early") throw std::runtime_error("of the check");
        },
        [](net::WebSocket&, const Call&) { throw std::runtime_error("of the conversation"); });
    auto fd = net::listen_on(net::Address::tcp("127.0.0.1", 0));
    ASSERT_TRUE(fd);
    ASSERT_TRUE(server->listen_fd(*fd));
    port = server->port();
    thread = std::thread([this] { loop.run(); });
  }
  void TearDown() override {
    if (!thread.joinable()) return;
    loop.post([this] {
      server.reset();
      loop.stop();
    });
    thread.join();
  }
  // A client without the token. The library's own limit of 5 s is short for a busy machine.
  httplib::Client plain_client() {
    httplib::Client made("127.0.0.1", port);
    made.set_connection_timeout(60);
    made.set_read_timeout(60);
    made.set_write_timeout(60);
    return made;
  }
  httplib::Client client() {
    httplib::Client made = plain_client();
    made.set_default_headers({{"Authorization", "Bearer secret"}});
    return made;
  }
  int raw() {
    int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    net::SockAddr address;
    net::literal_sockaddr("127.0.0.1", port, address);
    EXPECT_EQ(::connect(fd, address.get(), address.size), 0);
    timeval limit{60, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
  }
  // Returns the bytes that arrive until they contain `end` or the connection ends.
  static std::string read_until(int fd, const std::string& end) {
    std::string got;
    char byte;
    while (got.find(end) == std::string::npos && ::recv(fd, &byte, 1, 0) == 1) got += byte;
    return got;
  }

  // Sends `bytes`, closes the sending side after the first answer's head, and returns everything
  // the server answered until it closed the connection.
  std::string exchange(const std::string& bytes) {
    int fd = raw();
    ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    std::string answer = read_until(fd, "\r\n\r\n");
    ::shutdown(fd, SHUT_WR);
    answer += read_until(fd, "never");
    ::close(fd);
    return answer;
  }

  net::AsioLoop loop;
  std::unique_ptr<Server> server;
  std::thread thread;
  int port = 0;
  std::atomic<int> pieces{0}, waits{0}, ended{0};
};

}  // namespace rt::http
